// pmf/interval.cpp: a struct and a row of the table for each kind of interval
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/interval.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "pmf/quantile.hpp"

namespace hdicore {
namespace {

double value_at(const Pmf& pmf, std::size_t atom) noexcept {
    return pmf.value(atom);
}
std::optional<double> value_at(const PartialPmf& pmf, std::size_t atom) noexcept {
    const double value = pmf.values[atom];
    return std::isnan(value) ? std::nullopt : std::optional(value);
}

// As value_at; behind the last atom a lower end is the horizon.
double lower_end_at(const Pmf& pmf, std::size_t atom) noexcept {
    return atom < pmf.size() ? pmf.values[atom] : pmf.horizon;
}
std::optional<double> lower_end_at(const PartialPmf& pmf, std::size_t atom) noexcept {
    return value_at(pmf, atom);
}

Interval from_ends(double lower, double upper) noexcept {
    return {lower, upper};
}
std::optional<Interval> from_ends(std::optional<double> lower,
                                  std::optional<double> upper) noexcept {
    return lower && upper ? std::optional(Interval{*lower, *upper}) : std::nullopt;
}

Interval midway(const Interval& a, const Interval& b) noexcept {
    return {std::midpoint(a.lower, b.lower), std::midpoint(a.upper, b.upper)};
}
std::optional<Interval> midway(const std::optional<Interval>& a,
                               const std::optional<Interval>& b) noexcept {
    return a && b ? std::optional(midway(*a, *b)) : std::nullopt;
}

// Each struct reads its interval from a Pmf or PartialPmf, and says how much of one it needs.

// [largest atom such that the mass from it on holds the coverage, inf]
struct Lower {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        // Last start with enough mass to its right.
        const auto& masses = pmf.cumulative;
        const auto beyond =
            std::upper_bound(masses.begin(), masses.end(), pmf.whole() - pmf.needed(coverage));
        const auto last = static_cast<std::size_t>(beyond - masses.begin()) - 1;
        return from_ends(lower_end_at(pmf, last), infinity);
    }
    static double min_share(double coverage) noexcept { return coverage; }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        masses.mark_reaching(masses.needed(1) - masses.needed(coverage), marked);
    }
};

// The shortest closed interval that holds the coverage; `Lower` if no finite one does.
struct Hdi {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        const mass_t needed = pmf.needed(coverage);
        return needed > pmf.total() ? Lower::read(pmf, coverage) : shortest_interval(pmf, needed);
    }
    static double min_share(double coverage) noexcept { return coverage; }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        masses.mark_shortest(masses.needed(coverage), marked);
    }
};

// From the (1 - coverage) / 2 to the (1 + coverage) / 2 quantile.
struct EqualTailed {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        const std::size_t lower = pmf.first_reaching(pmf.needed((1 - coverage) / 2));
        return from_ends(lower_end_at(pmf, lower), inverted_cdf(pmf, (1 + coverage) / 2));
    }
    static double min_share(double coverage) noexcept {
        return min_share_of_inverted_cdf((1 + coverage) / 2);
    }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        mark_inverted_cdf(masses, (1 - coverage) / 2, marked);
        mark_inverted_cdf(masses, (1 + coverage) / 2, marked);
    }
};

// [-inf, smallest atom such that the mass up to it holds the coverage]
struct Upper {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        return from_ends(-infinity, value_at(pmf, pmf.first_reaching(pmf.needed(coverage))));
    }
    static double min_share(double coverage) noexcept { return coverage; }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        masses.mark_reaching(masses.needed(coverage), marked);
    }
};

// Midway between the HDI and the equal-tailed interval.
struct Averaged {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        return midway(Hdi::read(pmf, coverage), EqualTailed::read(pmf, coverage));
    }
    static double min_share(double coverage) noexcept {
        return std::min(Hdi::min_share(coverage), EqualTailed::min_share(coverage));
    }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        Hdi::mark(masses, coverage, marked);
        EqualTailed::mark(masses, coverage, marked);
    }
};

template <class Of>
constexpr KindOfInterval row(hdicore_kind number, const char* name, bool has_lower, bool has_upper,
                             bool holds_coverage) {
    return {static_cast<Kind>(number),
            name,
            has_lower,
            has_upper,
            holds_coverage,
            Of::template read<Pmf>,
            Of::template read<PartialPmf>,
            Of::min_share,
            Of::mark};
}

constexpr KindOfInterval table[] = {
    // Number, name; whether the lower and the upper end are numbers; whether the coverage is held.
    row<Hdi>(hdicore_hdi, "hdi", true, true, true),
    row<EqualTailed>(hdicore_equal_tailed, "equal_tailed", true, true, true),
    row<Lower>(hdicore_lower, "lower", true, false, true),
    row<Upper>(hdicore_upper, "upper", false, true, true),
    row<Averaged>(hdicore_averaged, "averaged", true, true, false),
};

static_assert(std::ranges::adjacent_find(table, std::greater_equal{}, &KindOfInterval::kind) ==
                  std::end(table),
              "numbers must ascend");

}  // namespace

std::span<const KindOfInterval> kinds() noexcept {
    return table;
}

const KindOfInterval& facts_of(Kind kind) noexcept {
    for (const KindOfInterval& each : table) {
        if (each.kind == kind) return each;
    }
    unreachable();
}

Interval interval(const Pmf& pmf, double coverage, Kind kind) noexcept {
    return facts_of(kind).read(pmf, coverage);
}

std::optional<Interval> interval(const PartialPmf& pmf, double coverage, Kind kind) noexcept {
    return facts_of(kind).read_partial(pmf, coverage);
}

}  // namespace hdicore
