// pmf/moving_quantiles.hpp: conformal quantiles of a window of scores that moves row by row
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <span>

#include "base/interruption.hpp"

namespace hdicore {

// Writes the quantile of the window before each score is taken in: of m scores the k-th smallest,
// k = ceil((m + 1) (1 - miss)), infinite if k > m. The window begins with `start`, oldest first,
// and holds the latest `size` scores. After each score `miss` moves by rate * (target - missed),
// where the score missed if it is above its quantile (Gibbs and Candes, NeurIPS 2021); 0 leaves it.
// Returns the last miss. O(size) for each score.
double moving_quantiles(std::span<const double> start, std::span<const double> scores,
                        std::size_t size, double target, double miss, double rate,
                        std::span<double> quantiles,
                        Interruption& interruption = Interruption::never());

}  // namespace hdicore
