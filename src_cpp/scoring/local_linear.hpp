// scoring/local_linear.hpp: ridge regressions around rows, with the weights of their leaves
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "base/matrix.hpp"
#include "index/leaf_index.hpp"
#include "scoring/leaf_source.hpp"
#include "scoring/row_blocks.hpp"

namespace hdicore {

// What is left of the ridge regression around a row x: a plane through the weighted means.
struct LocalFit {
    double at_row;                    // value of the plane at x
    double target;                    // weighted mean of the targets
    std::span<const double> centre;   // (q,) weighted mean of the features
    std::span<const double> slope;    // (q,)
    std::span<const double> inverse;  // (q, q) of the penalised weighted covariance

    static constexpr std::size_t size(std::size_t q) noexcept { return 2 + 2 * q + q * q; }

    // One that `local_linear` wrote, (size(q),).
    static LocalFit read(std::span<const double> fit, std::size_t q) noexcept {
        return {fit[0], fit[1], fit.subspan(2, q), fit.subspan(2 + q, q), fit.subspan(2 + 2 * q)};
    }

    // Value at x, whose features are `at`, of the fit without one of its rows, with the same
    // penalty: weight, features and target are of this row. 1 minus its leverage is taken as
    // min_rest at least. O(q^2).
    double without(std::span<const double> at, double weight, std::span<const double> features,
                   double row_target, double min_rest) const noexcept;
};

struct LocalLinearRequest {
    Matrix<const double> at;            // (n_rows, q) features of the rows
    Matrix<const double> features;      // (n_atoms, q) of the training row of each atom
    std::span<const double> targets;    // (n_atoms,)
    std::span<const double> penalties;  // (k,) finite, not negative
    Matrix<double> results;             // (n_rows, k) values of the planes at the rows
    Matrix<double> fits{};              // (n_rows * k, LocalFit::size(q)), or none
};

// Weighted ridge regressions of the targets on features minus those of the row, whose intercept is
// not penalised: the local linear forest of Friedberg, Tibshirani, Athey and Wager (2020). Weights
// are those of the atoms of output 0. A penalty is in units of the mean weighted square of a
// feature's distance from the row. Directions in which the weighted rows do not differ have slope
// 0; the weighted mean stands for what is no finite number. NaN where no tree contributes.
//
// O(entries + atoms q^2 + k q^3) for each row. Throws std::invalid_argument at extents that do not
// fit.
void local_linear(const LeafIndex& index, const LeafSource& source,
                  const LocalLinearRequest& request, const Execution& execution);

}  // namespace hdicore
