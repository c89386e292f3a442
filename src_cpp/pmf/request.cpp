// pmf/request.cpp: one statistic after the other
// SPDX-License-Identifier: BSD-3-Clause
#include "pmf/request.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

namespace hdicore {
namespace {

// Whether a statistic can be read from a distribution with gaps.
template <class Statistic>
concept ReadsPartial = requires(const Statistic& statistic, const PartialPmf& pmf,
                                const BucketMasses& masses, BucketSet& marked) {
    statistic.read_partial(pmf, std::size_t{});
    statistic.min_share();
    statistic.mark(masses, marked);
};

// Whether it is the same for rows of one distribution.
template <class Statistic>
concept Copies = requires { Statistic::is_copied; };

// Whether it has more than results.
template <class Statistic>
concept HasOthers = requires(const Statistic& statistic) { statistic.fill_others(std::size_t{}); };

// Calls use(statistic) for each that is not empty, as long as it returns true.
template <class Use>
bool each_statistic(const Request& request, const Use& use) noexcept {
    const auto use_one = [&](const auto& statistic) {
        return statistic.is_empty() || use(statistic);
    };
    return use_one(request.intervals) && use_one(request.quantiles) && use_one(request.cdf) &&
           use_one(request.draws) && use_one(request.priced) && use_one(request.regions);
}

template <class T>
void copy_row(Matrix<T> results, std::size_t from, std::size_t at) noexcept {
    std::ranges::copy(results.row(from), results.row(at).begin());
}

bool uses_observation(Interpolation interpolation) noexcept {
    return interpolation != Interpolation::inverted_cdf &&
           interpolation != Interpolation::averaged_inverted_cdf;
}

}  // namespace

void IntervalRequest::write(std::size_t at, std::size_t level,
                            const Interval& interval) const noexcept {
    results(at, level) = interval.lower;
    results(at, coverages.size() + level) = interval.upper;
}

void IntervalRequest::read(const Pmf& pmf, std::size_t at) const noexcept {
    for (std::size_t k = 0; k < coverages.size(); ++k) {
        write(at, k, interval(pmf, coverages[k], kind_of(k)));
    }
}

bool IntervalRequest::read_partial(const PartialPmf& pmf, std::size_t at) const noexcept {
    for (std::size_t k = 0; k < coverages.size(); ++k) {
        const std::optional<Interval> one = interval(pmf, coverages[k], kind_of(k));
        if (!one) return false;
        write(at, k, *one);
    }
    return true;
}

double IntervalRequest::min_share() const noexcept {
    double share = 1;
    for (std::size_t k = 0; k < coverages.size(); ++k) {
        share = std::min(share, facts_of(kind_of(k)).min_share(coverages[k]));
    }
    return share;
}

void IntervalRequest::mark(const BucketMasses& masses, BucketSet& marked) const noexcept {
    for (std::size_t k = 0; k < coverages.size(); ++k) {
        facts_of(kind_of(k)).mark(masses, coverages[k], marked);
    }
}

void IntervalRequest::shift(std::size_t at, double by) const noexcept {
    for (double& end : results.row(at)) end += by;
}

void QuantileRequest::read(const Pmf& pmf, std::size_t at) const noexcept {
    for (std::size_t k = 0; k < levels.size(); ++k) {
        results(at, k) = quantile(pmf, levels[k], interpolation);
    }
}

bool QuantileRequest::read_partial(const PartialPmf& pmf, std::size_t at) const noexcept {
    if (interpolation != Interpolation::inverted_cdf) return false;
    for (std::size_t k = 0; k < levels.size(); ++k) {
        const std::optional<double> one = inverted_cdf(pmf, levels[k]);
        if (!one) return false;
        results(at, k) = *one;
    }
    return true;
}

double QuantileRequest::min_share() const noexcept {
    if (interpolation != Interpolation::inverted_cdf) return 0;
    double share = 1;
    for (const double level : levels) share = std::min(share, min_share_of_inverted_cdf(level));
    return share;
}

void QuantileRequest::mark(const BucketMasses& masses, BucketSet& marked) const noexcept {
    for (const double level : levels) mark_inverted_cdf(masses, level, marked);
}

void CdfRequest::read(const Pmf& pmf, std::size_t at) const noexcept {
    for (std::size_t k = 0; k < points.cols(); ++k) {
        results(at, k) = pmf.cdf(points(at, k), inclusive);
    }
}

void DrawRequest::read(const Pmf& pmf, std::size_t at) const noexcept {
    for (double& draw : results.row(at)) draw = pmf.draw(draw);
}

void PricedRequest::fill_others(std::size_t at) const noexcept {
    std::ranges::fill(units.row(at), 0);
    if (!shares.empty()) std::ranges::fill(shares.row(at), nan);
}

template <class AnyPmf>
bool PricedRequest::read_any(const AnyPmf& pmf, std::size_t at) const noexcept {
    const mass_t needed = pmf.needed(min_coverage);
    const auto total = static_cast<double>(pmf.total());
    std::array<PricedInterval, prices_at_once> found;
    for (std::size_t k = 0; k < prices.size(); k += prices_at_once) {
        const auto some = prices.subspan(k, std::min(prices_at_once, prices.size() - k));
        if (!priced_intervals(pmf, pmf.max_abs(), needed, some, found)) return false;
        for (std::size_t l = 0; l < some.size(); ++l) {
            results(at, k + l) = found[l].ends.lower;
            results(at, prices.size() + k + l) = found[l].ends.upper;
            units(at, k + l) = found[l].mass;
            if (!shares.empty()) shares(at, k + l) = static_cast<double>(found[l].mass) / total;
        }
    }
    return true;
}

void PricedRequest::read(const Pmf& pmf, std::size_t at) const noexcept {
    read_any(pmf, at);
}

bool PricedRequest::read_partial(const PartialPmf& pmf, std::size_t at) const noexcept {
    return read_any(pmf, at);
}

void PricedRequest::mark(const BucketMasses& masses, BucketSet& marked) const noexcept {
    masses.mark_ends(masses.needed(min_coverage), marked);
}

void PricedRequest::copy_others(std::size_t from, std::size_t at) const noexcept {
    copy_row(units, from, at);
    if (!shares.empty()) copy_row(shares, from, at);
}

void RegionRequest::fill_others(std::size_t at) const noexcept {
    n_pieces[at] = 0;
    bounds[at] = nan;
}

void RegionRequest::read(const Pmf& pmf, std::size_t at, RegionSearch& search) const noexcept {
    const Region found = search.find(pmf, pmf.needed(coverage), shape);
    std::ranges::fill(results.row(at), nan);
    for (std::size_t q = 0; q < found.n_pieces; ++q) {
        results(at, 2 * q) = found.pieces[q].lower;
        results(at, 2 * q + 1) = found.pieces[q].upper;
    }
    n_pieces[at] = static_cast<std::int64_t>(found.n_pieces);
    bounds[at] = found.bound;
}

void RegionRequest::copy_others(std::size_t from, std::size_t at) const noexcept {
    n_pieces[at] = n_pieces[from];
    bounds[at] = bounds[from];
}

Needs needs(const Request& request) noexcept {
    Needs all;
    each_statistic(request, [&]<class Statistic>(const Statistic& statistic) {
        double share = 0;
        if constexpr (ReadsPartial<Statistic>) share = statistic.min_share();
        all.min_share = std::min(all.min_share, share);
        all.nothing = false;
        return true;
    });
    all.every_atom = all.min_share <= 0;
    all.few_buckets = request.priced.is_empty();
    all.observation =
        !request.quantiles.is_empty() && uses_observation(request.quantiles.interpolation);
    return all;
}

void mark(const BucketMasses& masses, const Request& request, BucketSet& marked) noexcept {
    each_statistic(request, [&]<class Statistic>(const Statistic& statistic) {
        if constexpr (ReadsPartial<Statistic>) statistic.mark(masses, marked);
        return true;
    });
}

void read(const Pmf& pmf, const Request& request, std::size_t at, RegionSearch* search) noexcept {
    each_statistic(request, [&]<class Statistic>(const Statistic& statistic) {
        if (pmf.is_empty()) {
            std::ranges::fill(statistic.results.row(at), nan);
            if constexpr (HasOthers<Statistic>) statistic.fill_others(at);
        } else if constexpr (std::is_same_v<Statistic, RegionRequest>) {
            statistic.read(pmf, at, *search);
        } else {
            statistic.read(pmf, at);
        }
        return true;
    });
}

bool is_copied(const Request& request) noexcept {
    return each_statistic(request,
                          []<class Statistic>(const Statistic&) { return Copies<Statistic>; });
}

void copy(const Request& request, std::size_t from, std::size_t at) noexcept {
    each_statistic(request, [&]<class Statistic>(const Statistic& statistic) {
        if constexpr (Copies<Statistic>) copy_row(statistic.results, from, at);
        if constexpr (HasOthers<Statistic>) statistic.copy_others(from, at);
        return true;
    });
}

bool read_partial(const PartialPmf& pmf, const Request& request, std::size_t at) noexcept {
    return each_statistic(request, [&]<class Statistic>(const Statistic& statistic) {
        if constexpr (ReadsPartial<Statistic>) {
            return statistic.read_partial(pmf, at);
        } else {
            return false;
        }
    });
}

}  // namespace hdicore
