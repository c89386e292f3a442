// calibrated/groups.hpp: groups of rows, which numbers tell, with quantiles of their own
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace hdicore {

// Quantiles of the coverages for rows of each label.
class CalibrationGroups {
  public:
    // Labels (g,) are distinct. Nothing: the label is missing; NaN: a text, which is not looked up.
    CalibrationGroups(std::optional<std::size_t> feature, std::vector<std::optional<double>> labels,
                      std::vector<double> q_hat);

    // Number of the group; labels.size() if there is none. O(log g).
    std::size_t find(double label) const noexcept;

    // Of a group and the j-th coverage: its own, or the common one if it has none.
    double quantile(std::size_t group, std::size_t j, double common) const noexcept;

    std::optional<std::size_t> feature;  // that holds the labels; none: given with the rows
    std::vector<std::optional<double>> labels;
    std::vector<double> q_hat;  // (g, n_levels) NaN: as all rows

  private:
    std::vector<std::pair<double, std::size_t>> numbers_;  // and their groups, ascending
    std::size_t missing_;                                  // the group of rows without a label
};

}  // namespace hdicore
