// test_cross_calibration.cpp: sums of ends and scores of several folds, by hand and any threads
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "calibrated/cross_calibration.hpp"
#include "check.hpp"

using namespace hdicore;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const PostProcess plain(-1, 1, false, {}, {});
const std::size_t two_and_one[] = {2, 1}, only_one[] = {3}, single[] = {1, 1, 1};
const double scores[] = {1, 3, 2};

bool near(double a, double b) {
    return a >= b && a < b + 1e-12;
}

Interval found(const CrossCalibration& cross, Matrix<const double> ends, unsigned n_threads = 1) {
    const std::size_t positions[] = {0};
    double interval[2];
    cross.intervals(ends, positions, {.n_threads = n_threads}, {interval, 1, 2});
    return {interval[0], interval[1]};
}

void ends_are_the_kth_of_sums() {
    const double ends[] = {0, 10, 5, 20};
    for (const double needed : {1.0, 2.0, 3.0}) {
        const double k[] = {needed};
        const CrossCalibration cross(two_and_one, {scores, 3, 1}, {}, k, plain);
        const Interval own = found(cross, {ends, 2, 2});
        // Upper: 11, 13 and 22; lower: -1, -3 and 3.
        CHECK(near(own.upper, needed == 1 ? 11 : needed == 2 ? 13 : 22));
        CHECK(near(-own.lower, needed == 1 ? -3 : needed == 2 ? 1 : 3));
    }
}

void forests_of_single_rows_are_sorted() {
    const double ends[] = {0, 10, 5, 20, 0, 0}, k[] = {2}, heavy[] = {1, 5, 1}, most[] = {6.5};
    const double ascending[] = {1, 2, 3};
    const CrossCalibration cross(single, {ascending, 3, 1}, {}, k, plain);
    CHECK(near(found(cross, {ends, 3, 2}).upper, 11));  // of 11, 22 and 3
    const CrossCalibration weighted(single, {ascending, 3, 1}, {heavy, 3, 1}, most, plain);
    CHECK(near(found(weighted, {ends, 3, 2}).upper, 22));
}

void ends_are_infinite_or_missing() {
    const double ends[] = {0, 10, 5, 20}, k[] = {4};
    const CrossCalibration few(two_and_one, {scores, 3, 1}, {}, k, plain);
    CHECK(found(few, {ends, 2, 2}).upper == infinity);
    const double missing[] = {0, std::nan(""), 5, 20}, two[] = {2};
    const CrossCalibration cross(two_and_one, {scores, 3, 1}, {}, two, plain);
    CHECK(std::isnan(found(cross, {missing, 2, 2}).upper));
}

void threads_change_nothing() {
    constexpr std::size_t n = 500;
    double ends[4 * n], one[2 * n], many[2 * n];
    for (std::size_t i = 0; i < 4 * n; ++i) ends[i] = static_cast<double>((i * 7919) % 1000) / 7;
    const double k[] = {2};
    const std::size_t positions[] = {0};
    const CrossCalibration cross(two_and_one, {scores, 3, 1}, {}, k, plain);
    cross.intervals({ends, 2 * n, 2}, positions, {.n_threads = 1}, {one, n, 2});
    cross.intervals({ends, 2 * n, 2}, positions, {.n_threads = 4, .block_rows = 3}, {many, n, 2});
    for (std::size_t i = 0; i < 2 * n; ++i) CHECK(one[i] == many[i]);
}

void what_is_no_calibration_is_refused() {
    const double k[] = {2}, falling[] = {3, 1, 2}, no_weights[] = {1, 0, 1},
                 none[] = {std::nan("")};
    CHECK_REFUSED(CrossCalibration(only_one, {scores, 3, 1}, {}, k, plain), "two folds");
    CHECK_REFUSED(CrossCalibration(two_and_one, {falling, 3, 1}, {}, k, plain), "ascend");
    CHECK_REFUSED(CrossCalibration(two_and_one, {scores, 3, 1}, {no_weights, 3, 1}, k, plain),
                  "positive");
    CHECK_REFUSED(CrossCalibration(two_and_one, {scores, 3, 1}, {}, none, plain), "NaN");
}

}  // namespace

int main() {
    ends_are_the_kth_of_sums();
    forests_of_single_rows_are_sorted();
    ends_are_infinite_or_missing();
    threads_change_nothing();
    what_is_no_calibration_is_refused();
    return check::finish();
}
