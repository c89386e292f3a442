// pmf/interval.cpp: one struct for each kind of interval
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "pmf/quantile.hpp"

namespace hdicore {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double value_at(const Pmf& pmf, std::size_t atom) noexcept {
    return pmf.values[atom];
}
std::optional<double> value_at(const PartialPmf& pmf, std::size_t atom) noexcept {
    const double value = pmf.values[atom];
    return std::isnan(value) ? std::nullopt : std::optional(value);
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

struct Hdi {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        return shortest_interval(pmf, pmf.needed(coverage));
    }
    static double min_share(double coverage) noexcept { return coverage; }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        masses.mark_shortest(masses.needed(coverage), marked);
    }
};

struct EqualTailed {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        return from_ends(inverted_cdf(pmf, (1 - coverage) / 2),
                         inverted_cdf(pmf, (1 + coverage) / 2));
    }
    static double min_share(double coverage) noexcept {
        return min_share_of_inverted_cdf((1 + coverage) / 2);
    }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        mark_inverted_cdf(masses, (1 - coverage) / 2, marked);
        mark_inverted_cdf(masses, (1 + coverage) / 2, marked);
    }
};

struct Lower {
    template <class AnyPmf>
    static auto read(const AnyPmf& pmf, double coverage) noexcept {
        // Last start with enough mass to its right.
        const auto& masses = pmf.cumulative;
        const auto beyond =
            std::upper_bound(masses.begin(), masses.end() - 1, pmf.total() - pmf.needed(coverage));
        const auto last = static_cast<std::size_t>(beyond - masses.begin()) - 1;
        return from_ends(value_at(pmf, last), infinity);
    }
    static double min_share(double coverage) noexcept { return coverage; }
    static void mark(const BucketMasses& masses, double coverage, BucketSet& marked) noexcept {
        masses.mark_reaching(masses.needed(1) - masses.needed(coverage), marked);
    }
};

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

// Calls use with the struct of a kind.
template <class Use>
auto with_kind(Kind kind, const Use& use) noexcept {
    switch (kind) {
        case Kind::hdi:
            return use(Hdi());
        case Kind::equal_tailed:
            return use(EqualTailed());
        case Kind::lower:
            return use(Lower());
        case Kind::upper:
            return use(Upper());
        case Kind::averaged:
            return use(Averaged());
    }
    unreachable();
}

}  // namespace

Interval interval(const Pmf& pmf, double coverage, Kind kind) noexcept {
    return with_kind(kind, [&](auto of) { return of.read(pmf, coverage); });
}

std::optional<Interval> interval(const PartialPmf& pmf, double coverage, Kind kind) noexcept {
    return with_kind(kind, [&](auto of) { return of.read(pmf, coverage); });
}

double min_share(double coverage, Kind kind) noexcept {
    return with_kind(kind, [&](auto of) { return of.min_share(coverage); });
}

void mark_interval(const BucketMasses& masses, double coverage, Kind kind,
                   BucketSet& marked) noexcept {
    with_kind(kind, [&](auto of) { of.mark(masses, coverage, marked); });
}

}  // namespace hdicore
