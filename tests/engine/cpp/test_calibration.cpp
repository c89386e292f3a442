// test_calibration.cpp: intervals are widened, moved to what targets can be, and nested
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "model_file/calibration.hpp"

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
    const BaseInterval base{false, {Kind::hdi}, 0.5};
    Calibration calibration{{{0.5, base, 1}, {0.8, base, -1}, {0.9, base, -3}},
                            PostProcess(-100, 100, false, {}, {}),
                            {}};
    CHECK(calibration.bases(2).size() == 2 && calibration.bases(3).size() == 3);
    CHECK(calibration.find(0.8 + 1e-8) == 1u && !calibration.find(0.81));
    Interval ends[] = {{0, 2}, {0, 6}, {2, 6}};
    calibration.widen(ends, 3, 0);
    CHECK(std::fabs(ends[0].lower + 1) < 1e-12 && ends[0].lower < -1 && ends[0].upper > 3);
    // Both ends move inwards, and the interval contains the one before.
    CHECK(ends[1].lower == ends[0].lower && std::fabs(ends[1].upper - 5) < 1e-12);
    // Its ends cross.
    CHECK(ends[2].lower == ends[1].lower && ends[2].upper == ends[1].upper);

    calibration.groups =
        CalibrationGroups{0, {3.0, std::nullopt, nan}, {0, 0, 0, nan, 7, 7, 0, 0, 0}};
    CHECK(calibration.groups->find(3) == 0 && calibration.groups->find(nan) == 1 &&
          calibration.groups->find(4) == 3);
    for (const auto& [group, lower] : {std::pair(0, 0.0), std::pair(1, -1.0), std::pair(3, -1.0)}) {
        Interval one[] = {{0, 2}};
        calibration.widen(one, 1, static_cast<std::size_t>(group));
        CHECK(std::fabs(one[0].lower - lower) < 1e-12);
    }
}

}  // namespace

int main() {
    ends_are_clipped_and_do_not_cross();
    ends_are_targets_on_a_lattice();
    what_is_out_of_range_is_refused();
    intervals_are_widened_and_nested();
    return check::finish();
}
