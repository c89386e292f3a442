// scoring/row_reader.cpp: checks the training rows that are to be left out
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/row_reader.hpp"

#include <string>

#include "base/refusal.hpp"

namespace hdicore {

void check_leave_out(const LeafIndex& index, std::span<const std::uint32_t> leave_out,
                     std::size_t n_rows) {
    if (leave_out.empty()) return;
    if (!index.row_weights()) {
        refuse("leave_out needs an index built with keep_row_weights");
    }
    const std::size_t n_training_rows = index.row_weights()->rows.size();
    for (std::size_t i = 0; i < n_rows; ++i) {
        if (leave_out[i] >= n_training_rows) {
            refuse("leave_out[" + std::to_string(i) + "] names training row " +
                   std::to_string(leave_out[i]) + " of " + std::to_string(n_training_rows));
        }
    }
}

}  // namespace hdicore
