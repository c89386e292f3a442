// scoring/centred.cpp: merges the leaves of a training row, and corrects each atom for the row
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/centred.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/parallel.hpp"
#include "kernels/kernels.hpp"
#include "merge/accumulator.hpp"
#include "merge/leave_one_out.hpp"
#include "scoring/local_linear.hpp"

namespace hdicore {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// As min_rest for regressions. Larger, because a row that decides a regression leaves a gap behind
// that the trees, had they not seen it, would have closed: residuals of new rows are smaller.
constexpr double min_local_rest = 0.7;

// Scratch memory of one thread.
class CentredWorker {
  public:
    explicit CentredWorker(const CentredRows& rows)
        : rows_(rows),
          accumulator_(rows.index, default_kernels()),
          leave_one_out_(rows.index),
          own_weight_(rows.index.row_weights()->rows.size(), 0) {
        slices_.reserve(rows.index.n_trees());
        atoms_.reserve(rows.index.max_atoms());
        values_.reserve(rows.index.max_atoms());
        cumulative_.reserve(rows.index.max_atoms() + 1);
    }

    void evaluate(const CentredRequest& request, std::size_t at) noexcept {
        const std::uint32_t row = request.rows[at];
        find_slices(row);
        const Pmf others = leave_one_out_.merge(accumulator_, 0, slices_, row);
        const std::size_t n_levels = request.coverages.size();
        if (others.size() > 0) {
            add_own_weight(row, 1);
            centre(others, row);
            add_own_weight(row, 0);
        }
        const Pmf centred(values_, cumulative_, others.n_trees, others.shift);
        const double own_centre = stacked(rows_.centres[row], row);
        for (std::size_t k = 0; k < request.kinds.size(); ++k) {
            const std::span<double> ends = request.results.row(k * request.rows.size() + at);
            for (std::size_t l = 0; l < n_levels; ++l) {
                const Interval found =
                    others.size() == 0 ? Interval{nan, nan}
                                       : interval(centred, request.coverages[l], request.kinds[k]);
                ends[l] = own_centre + found.lower;
                ends[n_levels + l] = own_centre + found.upper;
            }
        }
    }

  private:
    void find_slices(std::uint32_t row) noexcept {
        slices_.clear();
        for (std::size_t t = 0; t < rows_.index.n_trees(); ++t) {
            if (rows_.counts(row, t) != 0) continue;
            const EntrySlice slice = rows_.index.entries(0, t, rows_.leaves(row, t));
            if (slice.n > 0) slices_.push_back(slice);
        }
    }

    // Adds the weight of the row's target in the centres of the rows that share leaves with it in
    // trees that drew it and not them; or, with factor 0, resets these sums.
    void add_own_weight(std::uint32_t row, double factor) noexcept {
        const double weight = rows_.draw_weight.empty() ? 1 : rows_.draw_weight[row];
        for (std::size_t t = 0; t < rows_.index.n_trees(); ++t) {
            const std::int32_t count = rows_.counts(row, t);
            if (count == 0) continue;
            const EntrySlice slice = rows_.index.entries(0, t, rows_.leaves(row, t));
            const double share = factor * count * weight / rows_.leaf_weight[leaf_number(row, t)];
            for (std::size_t e = slice.begin; e < slice.begin + slice.n; ++e) {
                const auto other = rows_.index.rank(e);
                if (rows_.counts(other, t) != 0) continue;
                own_weight_[other] = factor == 0 ? 0 : own_weight_[other] + share;
            }
        }
    }

    std::size_t leaf_number(std::uint32_t row, std::size_t tree) const noexcept {
        return static_cast<std::size_t>(rows_.index.arrays().leaf_offsets[tree]) +
               static_cast<std::size_t>(rows_.leaves(row, tree));
    }

    double stacked(double centre, std::uint32_t row) const noexcept {
        return rows_.scale * centre + (rows_.offsets.empty() ? 0 : rows_.offsets[row]);
    }

    // The regression around `other`, without a row that has this weight in it.
    double offset_without(std::uint32_t row, double weight, rank_t other) const noexcept {
        const CentredFits& local = *rows_.local;
        const LocalFit fit = LocalFit::read(local.fits.row(other), local.features.cols());
        const double value = fit.without(local.features.row(other), weight, local.features.row(row),
                                         rows_.y[row], min_local_rest);
        return local.share * std::clamp(value, local.low, local.high);
    }

    // Fills values_ and cumulative_ with the residuals of the other rows.
    void centre(const Pmf& others, std::uint32_t row) noexcept {
        atoms_.clear();
        const std::span<const rank_t> ranks = accumulator_.ranks();
        for (std::size_t k = 0; k < ranks.size(); ++k) {
            const rank_t j = ranks[k];
            const double own = own_weight_[j] / rows_.n_oob[j];
            const double centre =
                (rows_.centres[j] - own * rows_.y[row]) / std::max(1 - own, min_rest);
            const double stack = rows_.local && own > 0
                                     ? rows_.scale * centre + offset_without(row, own, j)
                                     : stacked(centre, j);
            // + 0.0 makes one value of -0.0 and 0.0.
            atoms_.emplace_back(rows_.y[j] - stack + 0.0,
                                others.cumulative[k + 1] - others.cumulative[k]);
        }
        std::sort(atoms_.begin(), atoms_.end());
        values_.clear();
        cumulative_.assign(1, 0);
        for (const auto& [value, mass] : atoms_) {
            if (values_.empty() || values_.back() != value) {
                values_.push_back(value);
                cumulative_.push_back(cumulative_.back());
            }
            cumulative_.back() += mass;
        }
    }

    const CentredRows& rows_;
    Accumulator accumulator_;
    LeaveOneOut leave_one_out_;
    std::vector<EntrySlice> slices_;
    std::vector<double> own_weight_;  // (n_rows,) zero between rows
    std::vector<std::pair<double, mass_t>> atoms_;
    std::vector<double> values_;
    std::vector<mass_t> cumulative_;
};

}  // namespace

void centred_oob_intervals(const CentredRows& rows, const CentredRequest& request,
                           unsigned n_threads, Interruption& interruption) {
    if (!rows.index.row_weights()) {
        throw std::invalid_argument("index must be built with keep_row_weights");
    }
    constexpr std::size_t at_once = 8;
    const auto make_worker = [&]() -> Worker {
        const auto worker = std::make_shared<CentredWorker>(rows);
        return [&, worker](std::size_t block) {
            const std::size_t end = std::min(request.rows.size(), (block + 1) * at_once);
            for (std::size_t i = block * at_once; i < end; ++i) {
                interruption.check();
                worker->evaluate(request, i);
            }
        };
    };
    parallel_for((request.rows.size() + at_once - 1) / at_once, n_threads, make_worker,
                 interruption);
}

}  // namespace hdicore
