// scoring/local_linear.cpp: moments of the weighted rows, and an LDL^T solve for each penalty
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/local_linear.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "merge/accumulator.hpp"
#include "merge/whole.hpp"
#include "scoring/row_reader.hpp"

namespace hdicore {
namespace {

// A pivot of which rounding leaves no digit belongs to a direction without spread.
constexpr double min_pivot = 1e-12;

double dot(std::span<const double> a, std::span<const double> b) noexcept {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// One thread's regression around one row after the other.
class Ridge {
  public:
    explicit Ridge(const LocalLinearRequest& request)
        : request_(request),
          q_(request.features.cols()),
          distance_(q_),
          step_(q_),
          covariance_(q_ * q_),
          product_(q_),
          factor_(q_ * q_),
          own_fit_(LocalFit::size(q_)) {}

    void fit(std::size_t row, const Pmf& pmf, std::span<const rank_t> ranks) noexcept {
        const std::size_t k = request_.penalties.size();
        measure(pmf, ranks);
        const std::span<const double> at = request_.at.row(row);
        for (std::size_t c = 0; c < q_; ++c) distance_[c] = at[c] - centre_of(own_fit_)[c];
        const double mean_square = (trace() + dot(distance_, distance_)) / static_cast<double>(q_);
        for (std::size_t p = 0; p < k; ++p) {
            solve(request_.penalties[p] * mean_square);
            request_.results(row, p) = own_fit_[0];
            if (!request_.fits.empty()) {
                std::ranges::copy(own_fit_, request_.fits.row(row * k + p).begin());
            }
        }
    }

  private:
    std::span<double> centre_of(std::vector<double>& fit) const noexcept {
        return std::span(fit).subspan(2, q_);
    }
    std::span<double> slope() noexcept { return std::span(own_fit_).subspan(2 + q_, q_); }
    std::span<double> inverse() noexcept { return std::span(own_fit_).subspan(2 + 2 * q_); }
    double trace() const noexcept {
        double sum = 0;
        for (std::size_t c = 0; c < q_; ++c) sum += covariance_[c * q_ + c];
        return sum;
    }

    // Weighted means, and moments around them.
    void measure(const Pmf& pmf, std::span<const rank_t> ranks) noexcept {
        std::ranges::fill(own_fit_, 0.0);
        std::ranges::fill(covariance_, 0.0);
        std::ranges::fill(product_, 0.0);
        const double total = static_cast<double>(pmf.total());
        const auto weight = [&](std::size_t a) {
            return static_cast<double>(pmf.cumulative[a + 1] - pmf.cumulative[a]) / total;
        };
        const std::span<double> centre = centre_of(own_fit_);
        for (std::size_t a = 0; a < ranks.size(); ++a) {
            const double w = weight(a);
            const double* features = request_.features.row(ranks[a]).data();
            for (std::size_t c = 0; c < q_; ++c) centre[c] += w * features[c];
            own_fit_[1] += w * request_.targets[ranks[a]];
        }
        if (ranks.empty()) own_fit_[1] = std::numeric_limits<double>::quiet_NaN();
        for (std::size_t a = 0; a < ranks.size(); ++a) {
            const double w = weight(a);
            const double* features = request_.features.row(ranks[a]).data();
            const double residual = request_.targets[ranks[a]] - own_fit_[1];
            for (std::size_t c = 0; c < q_; ++c) step_[c] = features[c] - centre[c];
            for (std::size_t c = 0; c < q_; ++c) {
                const double weighted = w * step_[c];
                product_[c] += weighted * residual;
                for (std::size_t b = 0; b <= c; ++b) covariance_[c * q_ + b] += weighted * step_[b];
            }
        }
    }

    // The plane with an absolute penalty, or the weighted mean if that is no finite number.
    void solve(double penalty) noexcept {
        factorise(penalty);
        for (std::size_t c = 0; c < q_; ++c) invert_column(c);
        for (std::size_t c = 0; c < q_; ++c) {
            slope()[c] = dot(inverse().subspan(c * q_, q_), product_);
        }
        own_fit_[0] = own_fit_[1] + dot(slope(), distance_);
        if (std::isfinite(own_fit_[0])) return;
        own_fit_[0] = own_fit_[1];
        std::ranges::fill(slope(), 0.0);
        std::ranges::fill(inverse(), 0.0);
    }

    // L below the diagonal and D on it, of covariance + penalty; D is 0 where there is no spread.
    void factorise(double penalty) noexcept {
        for (std::size_t c = 0; c < q_; ++c) {
            for (std::size_t b = 0; b <= c; ++b) {
                double rest = covariance_[c * q_ + b] + (b == c ? penalty : 0);
                const double before = rest;
                for (std::size_t a = 0; a < b; ++a) {
                    rest -= factor_[c * q_ + a] * factor_[a * q_ + a] * factor_[b * q_ + a];
                }
                if (b == c) {
                    factor_[c * q_ + c] = rest > min_pivot * before ? rest : 0;
                } else {
                    const double pivot = factor_[b * q_ + b];
                    factor_[c * q_ + b] = pivot > 0 ? rest / pivot : 0;
                }
            }
        }
    }

    void invert_column(std::size_t column) noexcept {
        const std::span<double> x = inverse().subspan(column * q_, q_);
        for (std::size_t c = 0; c < q_; ++c) {
            x[c] = c == column ? 1 : 0;
            for (std::size_t a = 0; a < c; ++a) x[c] -= factor_[c * q_ + a] * x[a];
        }
        for (std::size_t c = q_; c-- > 0;) {
            const double pivot = factor_[c * q_ + c];
            x[c] = pivot > 0 ? x[c] / pivot : 0;
            for (std::size_t a = c + 1; a < q_; ++a) x[c] -= factor_[a * q_ + c] * x[a];
            if (!(pivot > 0)) x[c] = 0;
        }
    }

    const LocalLinearRequest& request_;
    std::size_t q_;
    std::vector<double> distance_;    // (q,) of the row from the weighted mean
    std::vector<double> step_;        // (q,) of a training row from it
    std::vector<double> covariance_;  // (q, q) lower triangle
    std::vector<double> product_;     // (q,) weighted covariances with the targets
    std::vector<double> factor_;      // (q, q) lower triangle
    std::vector<double> own_fit_;     // see LocalFit
};

// Scratch memory of one thread.
class LocalLinearWorker {
  public:
    LocalLinearWorker(const LeafIndex& index, const LeafSource& source,
                      const LocalLinearRequest& request, const Execution& execution,
                      std::size_t max_rows)
        : reader_(index, source, false, execution.interruption, max_rows),
          accumulator_(index, execution.kernels),
          ridge_(request),
          interruption_(execution.interruption) {}

    void fit(std::size_t begin, std::size_t end) {
        const auto fit_rows = [&](SameRows rows, std::size_t output, RowSlices slices,
                                  RowSlices next, RowLeaves) {
            accumulator_.prefetch(next);
            const Pmf pmf = merge_whole(accumulator_, output, slices);
            for (std::size_t k = 0; k < rows.size(); ++k) {
                if (k > 0) interruption_.check();
                ridge_.fit(rows[k], pmf, accumulator_.ranks());
            }
        };
        reader_.read(begin, end, fit_rows);
    }

  private:
    RowReader reader_;
    Accumulator accumulator_;
    Ridge ridge_;
    Interruption& interruption_;
};

void check(const LeafIndex& index, std::size_t n_rows, const LocalLinearRequest& request) {
    const std::size_t n = index.n_outputs() == 1 ? index.max_atoms() : 0;
    if (index.n_outputs() != 1) {
        throw std::invalid_argument("local_linear needs an index of one output");
    }
    if (request.features.rows() != n || request.targets.size() != n ||
        request.features.cols() == 0) {
        throw std::invalid_argument("features and targets must have a row for each atom");
    }
    if (request.at.rows() != n_rows || request.at.cols() != request.features.cols()) {
        throw std::invalid_argument("at must have a row for each row, of as many features");
    }
    const auto bad = [](double p) { return !(p >= 0 && std::isfinite(p)); };
    if (std::ranges::any_of(request.penalties, bad)) {
        throw std::invalid_argument("penalties must be finite and not negative");
    }
}

}  // namespace

double LocalFit::without(std::span<const double> at, double weight,
                         std::span<const double> features, double row_target,
                         double min_rest) const noexcept {
    double along = 1;   // weight of the row's target in the value at x, over its weight
    double spread = 1;  // its leverage, over its weight
    double residual = row_target - target;
    for (std::size_t c = 0; c < centre.size(); ++c) {
        double moved = 0;
        for (std::size_t b = 0; b < centre.size(); ++b) {
            moved += inverse[c * centre.size() + b] * (features[b] - centre[b]);
        }
        along += moved * (at[c] - centre[c]);
        spread += moved * (features[c] - centre[c]);
        residual -= slope[c] * (features[c] - centre[c]);
    }
    return at_row - weight * along * residual / std::max(1 - weight * spread, min_rest);
}

void local_linear(const LeafIndex& index, const LeafSource& source,
                  const LocalLinearRequest& request, const Execution& execution) {
    check(index, source.n_rows(), request);
    const auto make_worker = [&](std::size_t max_rows) {
        const auto worker =
            std::make_shared<LocalLinearWorker>(index, source, request, execution, max_rows);
        return [worker](std::size_t begin, std::size_t end) { worker->fit(begin, end); };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), execution, make_worker);
}

}  // namespace hdicore
