// test_post_process.cpp: intervals are widened, moved to what targets can be, and nested
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "calibrated/calibrated_scorer.hpp"
#include "calibrated/groups.hpp"
#include "check.hpp"

using namespace hdicore;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

bool same(Interval found, double lower, double upper) {
    return found.lower == lower && found.upper == upper;
}

void ends_are_clipped_and_do_not_cross() {
    const PostProcess plain(0, 10, false, {}, {});
    CHECK(same(plain.apply({-1, 12}), -1, 12));
    CHECK(same(plain.apply({5, 3}), 4, 4));
    const PostProcess clips(0, 10, true, {}, {});
    CHECK(same(clips.apply({-1, 12}), 0, 10));
    CHECK(same(clips.apply({-infinity, infinity}), -infinity, infinity));
    CHECK(std::isnan(clips.apply({nan, 3}).lower));
}

void ends_are_targets_on_a_lattice() {
    const double targets[] = {0, 1, 2.001, 4};
    const PostProcess points(0, 4, true, Lattice{0, 1, 0.0015}, targets);
    CHECK(same(points.apply({0.5, 2.5}), 1, 2.001));
    CHECK(same(points.apply({0.001, 3.999}), 0, 4));
    CHECK(same(points.apply({1.2, 1.4}), 1, 1));
    CHECK(same(points.apply({-7, 9}), 0, 4));
    // No target is 3: as far outwards as targets deviate.
    CHECK(points.apply({1, 3.2}).upper > 3.001);
}

void what_is_out_of_range_is_refused() {
    const double falling[] = {2, 1}, outside[] = {1, 9};
    CHECK_REFUSED(PostProcess(1, 0, true, {}, {}), "low <= high");
    CHECK_REFUSED(PostProcess(0, infinity, true, {}, {}), "finite");
    CHECK_REFUSED(PostProcess(0, 1, true, {}, outside), "none without a lattice");
    CHECK_REFUSED(PostProcess(0, 4, true, Lattice{0, 0, 0}, {}), "positive step");
    CHECK_REFUSED(PostProcess(0, 4, true, Lattice{0, 1, 0.01}, {}), "slack");
    CHECK_REFUSED(PostProcess(0, 4, true, Lattice{0, 1, 0}, falling), "ascend");
    CHECK_REFUSED(PostProcess(0, 4, true, Lattice{0, 1, 0}, outside), "ascend in");
}

void intervals_are_widened_and_nested() {
    const Calibration calibration{
        {{0.5, Kind::hdi, 0.5, 1}, {0.8, Kind::hdi, 0.5, -1}, {0.9, Kind::hdi, 0.5, -3}},
        PostProcess(-100, 100, false, {}, {})};
    CHECK(calibration.find(0.8 + 1e-8) == 1u && !calibration.find(0.81));
    double lower[] = {0, 0, 2}, upper[] = {2, 6, 6};
    const double q_hat[] = {1, -1, -3};
    calibrate(lower, upper, q_hat, calibration.postprocess);
    CHECK(std::fabs(lower[0] + 1) < 1e-12 && lower[0] < -1 && upper[0] > 3);
    // Both ends move inwards, and the interval contains the one before.
    CHECK(lower[1] == lower[0] && std::fabs(upper[1] - 5) < 1e-12);
    // Its ends cross.
    CHECK(lower[2] == lower[1] && upper[2] == upper[1]);
}

void scores_are_what_widens_enough() {
    const double targets[] = {0, 1, 2, 4};
    const PostProcess plain(0, 10, false, {}, {}), clips(0, 10, true, {}, {}),
        points(0, 4, false, Lattice{0, 1, 1e-6}, targets);
    CHECK(conformity_score({2, 5}, plain.reach(7)) == 2);
    CHECK(conformity_score({2, 5}, plain.reach(3)) == -1);
    CHECK(conformity_score({2, 5}, clips.reach(11)) == infinity);
    // Between 1 and 2 the farther counts.
    CHECK(conformity_score({2, 4}, points.reach(1.4)) == 1);
    CHECK(points.cell(1).lower == 0.5 && points.cell(1).upper == 1.5);
    CHECK(points.nearest(1.4, 1) == 1 && clips.nearest(-infinity, 1) == 0);
    CHECK(std::isnan(clips.nearest(nan, 1)));
}

void groups_are_found_by_their_label() {
    const CalibrationGroups groups(0, {3.0, std::nullopt, nan, -1.0}, {5, nan, 7, 8});
    CHECK(groups.find(3) == 0 && groups.find(nan) == 1 && groups.find(4) == 4);
    CHECK(groups.find(-1) == 3 && groups.find(-infinity) == 4);
    CHECK(groups.quantile(0, 0, 1) == 5 && groups.quantile(1, 0, 1) == 1);
    CHECK(groups.quantile(4, 0, 1) == 1);
}

}  // namespace

int main() {
    ends_are_clipped_and_do_not_cross();
    ends_are_targets_on_a_lattice();
    what_is_out_of_range_is_refused();
    intervals_are_widened_and_nested();
    scores_are_what_widens_enough();
    groups_are_found_by_their_label();
    return check::finish();
}
