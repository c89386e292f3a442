// calibrated/cross_calibration.cpp: the k-th smallest of sums of ends and scores, by bisection
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/cross_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/refusal.hpp"
#include "calibrated/calibrated_scorer.hpp"

namespace hdicore {
namespace {

// A step halves the difference, which begins below 2^54 times that at which it is small enough.
constexpr int max_steps = 54;
constexpr double rounding_of_sums = 1 + 1e-6;  // which depend on the order of weights
constexpr std::size_t rows_at_once = 64;

// The least of the values up to which these weigh so much as needed, or the last of all. Sorts the
// values, or their order.
double least_reaching(std::vector<double>& values, std::span<const double> weights, double needed,
                      std::vector<std::size_t>& order) {
    const std::size_t last = values.size() - 1;
    if (weights.empty()) {
        const auto at = static_cast<std::size_t>(std::max(std::ceil(needed) - 1, 0.0));
        const auto found = values.begin() + static_cast<std::ptrdiff_t>(std::min(at, last));
        std::nth_element(values.begin(), found, values.end());
        return *found;
    }
    // The last bits of a sum depend on the order of equal values.
    order.resize(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
    double reached = 0;
    for (const std::size_t i : order) {
        reached += weights[i];
        if (reached >= needed) return values[i];
    }
    return values[order[last]];
}

}  // namespace

// The search for the ends of single rows, with its memory.
class CrossCalibration::Search {
  public:
    explicit Search(std::span<const std::size_t> begins)
        : begins_(begins),
          shifts_(begins.size() - 1),
          low_(shifts_.size()),
          high_(shifts_.size()),
          at_(shifts_.size()),
          are_single_(begins.back() == shifts_.size()) {
        for (std::size_t f = 0; f < shifts_.size(); ++f) {
            are_single_ = are_single_ && begins[f + 1] - begins[f] == 1;
        }
    }

    // How much the scores of each fold are shifted, to be filled.
    std::span<double> shifts() noexcept { return shifts_; }

    // The least shifted score up to which scores weigh so much as needed.
    double end(const Level& level) {
        if (std::isinf(level.needed)) return infinity;
        double least = infinity, largest = -infinity, magnitude = 0;
        for (const double shift : shifts_) {
            if (std::isnan(shift)) return shift;
            least = std::min(least, shift);
            largest = std::max(largest, shift);
            magnitude = std::max(magnitude, std::fabs(shift));
        }
        const double rounding = allowance * (magnitude + std::fabs(level.middle));
        if (are_single_) {
            sums_.resize(shifts_.size());
            std::ranges::transform(shifts_, level.scores, sums_.begin(), std::plus());
            return least_reaching(sums_, level.weights, level.needed, order_) + rounding;
        }
        const double lower = least + level.middle - rounding;
        return bisected(level, lower, largest + level.middle + rounding, rounding) + rounding;
    }

  private:
    // As many scores as needed are up to `upper`, fewer up to `lower`.
    double bisected(const Level& level, double lower, double upper, double rounding) {
        // Of each fold at least `low` scores are, and at most `high`.
        for (std::size_t f = 0; f < shifts_.size(); ++f) {
            low_[f] = begins_[f];
            high_[f] = begins_[f + 1];
        }
        for (int step = 0; step < max_steps && upper - lower > 2 * rounding; ++step) {
            const double centre = lower / 2 + upper / 2;
            double reached = 0;
            for (std::size_t f = 0; f < shifts_.size(); ++f) {
                const double* scores = level.scores.data();
                const double* found =
                    std::upper_bound(scores + low_[f], scores + high_[f], centre - shifts_[f]);
                at_[f] = static_cast<std::size_t>(found - scores);
                if (at_[f] == begins_[f]) continue;
                reached += level.reached.empty() ? static_cast<double>(at_[f] - begins_[f])
                                                 : level.reached[at_[f] - 1];
            }
            const bool is_enough = reached >= level.needed;
            (is_enough ? upper : lower) = centre;
            std::swap(is_enough ? high_ : low_, at_);
        }
        return upper;
    }

    std::span<const std::size_t> begins_;
    std::vector<double> shifts_, sums_;
    std::vector<std::size_t> low_, high_, at_, order_;
    bool are_single_;
};

CrossCalibration::CrossCalibration(std::span<const std::size_t> sizes, Matrix<const double> scores,
                                   Matrix<const double> weights, std::span<const double> needed,
                                   PostProcess postprocess)
    : begins_(sizes.size() + 1), levels_(needed.size()), postprocess_(std::move(postprocess)) {
    if (sizes.size() < 2) refuse("scores must be those of two folds or more");
    std::size_t left = scores.rows();
    for (std::size_t f = 0; f < sizes.size(); ++f) {
        const bool is_last = f + 1 == sizes.size();
        if (is_last ? sizes[f] != left : sizes[f] > left) {
            refuse("scores must be as many as the sizes of the folds say");
        }
        left -= sizes[f];
        begins_[f + 1] = begins_[f] + sizes[f];
    }
    const auto column = [](Matrix<const double> values, std::size_t j) {
        std::vector<double> own(values.rows());
        for (std::size_t i = 0; i < own.size(); ++i) own[i] = values(i, j);
        return own;
    };
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < levels_.size(); ++j) {
        Level& level = levels_[j];
        if (std::isnan(needed[j])) refuse("needed must not be NaN");
        level.scores = column(scores, j);
        if (!weights.empty()) level.weights = level.reached = column(weights, j);
        for (std::size_t f = 0; f < sizes.size(); ++f) {
            const auto of_fold = [&](auto& values) {
                return values.empty() ? std::span<double>()
                                      : std::span<double>(values).subspan(begins_[f], sizes[f]);
            };
            const auto own = of_fold(level.scores), heavy = of_fold(level.reached);
            const auto is_finite = [](double value) { return std::isfinite(value); };
            if (!std::ranges::all_of(own, is_finite) || !std::ranges::is_sorted(own)) {
                refuse("scores must be finite and ascend");
            }
            if (!std::ranges::all_of(heavy, [](double w) { return std::isfinite(w) && w > 0; })) {
                refuse("weights must be finite and positive");
            }
            std::partial_sum(heavy.begin(), heavy.end(), heavy.begin());
        }
        const double most = weights.empty() ? static_cast<double>(scores.rows())
                                            : rounding_of_sums * std::reduce(level.weights.begin(),
                                                                             level.weights.end());
        level.needed = needed[j] > most || scores.empty() ? infinity : needed[j];
        if (std::isinf(level.needed)) continue;
        std::vector<double> all = level.scores;
        level.middle = least_reaching(all, level.weights, level.needed, order);
    }
}

void CrossCalibration::intervals(Matrix<const double> ends, std::span<const std::size_t> positions,
                                 const Execution& execution, Matrix<double> results) const {
    const std::size_t n = results.rows(), m = ends.cols() / 2;
    // Intervals contain those of lower coverages; higher ones are not needed.
    const std::size_t k = *std::ranges::max_element(positions) + 1;
    const auto make_worker = [&](std::size_t) {
        return [&, search = Search(begins_), own = std::vector<double>(2 * k),
                zeros = std::vector<double>(k)](std::size_t begin, std::size_t end) mutable {
            const std::span lower = std::span(own).first(k), upper = std::span(own).last(k);
            for (std::size_t i = begin; i < end; ++i) {
                for (std::size_t j = 0; j < k; ++j) {
                    const std::size_t at = m == 1 ? 0 : j;
                    for (std::size_t f = 0; f < n_folds(); ++f) {
                        search.shifts()[f] = -ends(f * n + i, at);
                    }
                    lower[j] = -search.end(levels_[j]);
                    for (std::size_t f = 0; f < n_folds(); ++f) {
                        search.shifts()[f] = ends(f * n + i, m + at);
                    }
                    upper[j] = search.end(levels_[j]);
                }
                calibrate(lower, upper, zeros, postprocess_);
                double* result = results.row(i).data();
                for (const std::size_t at : positions) *result++ = lower[at];
                for (const std::size_t at : positions) *result++ = upper[at];
            }
        };
    };
    for_each_block(n, 2 * k * n_folds(), rows_at_once, execution, make_worker);
}

}  // namespace hdicore
