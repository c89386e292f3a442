// index/leaf_checks.hpp: checks the arrays of an index that comes from outside, whole or by leaf
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include "base/interruption.hpp"
#include "index/leaf_table.hpp"

namespace hdicore {

// These throw std::invalid_argument.

void check_number_of_trees(std::size_t n_trees);

// Checks sizes, offsets and atoms. O(n_outputs * n_trees + n_atoms).
void check_sizes(const LeafTable& table);

// What the leaves of an index amount to.
struct LeafSizes {
    std::size_t max_leaf_size = 0;  // entries of the largest
    bool has_ties = false;          // whether rows of a leaf share a target
};

// Checks the leaves of all trees, after the sizes. O(n_entries) over n_threads threads.
LeafSizes check_leaves(const LeafTable& table, unsigned n_threads, Interruption& interruption);

// Checks the entries of one leaf, after the sizes.
void check_leaf(const LeafTable& table, std::size_t output, std::size_t tree, leaf_t leaf);

}  // namespace hdicore
