// test_moving_quantiles.cpp: windows that fill, stay full and hold ties; levels that move
// SPDX-License-Identifier: BSD-3-Clause
#include <limits>
#include <vector>

#include "check.hpp"
#include "pmf/moving_quantiles.hpp"

using namespace hdicore;

int main() {
    const double inf = std::numeric_limits<double>::infinity();
    std::vector<double> quantiles(5);
    // Levels of 0.055, 0.060 and 0.065 need more scores than nine.
    const std::vector<double> nine{1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<double> scores{10, 10, 1, 1, 0};
    const double last = moving_quantiles(nine, scores, 9, 0.1, 0.1, 0.05, quantiles);
    CHECK(quantiles == (std::vector<double>{9, inf, inf, inf, inf}));
    CHECK(last > 0.07499 && last < 0.07501);

    // A window of one, and a start that is longer than the window.
    moving_quantiles(nine, scores, 1, 0.5, 0.5, 0, quantiles);
    CHECK(quantiles == (std::vector<double>{9, 10, 10, 1, 1}));

    // Nothing at the start: the window fills.
    moving_quantiles({}, scores, 3, 0.5, 0.5, 0, quantiles);
    CHECK(quantiles == (std::vector<double>{inf, 10, 10, 10, 1}));

    CHECK(moving_quantiles(nine, {}, 3, 0.1, 0.3, 1, {}) == 0.3);
    return check::finish();
}
