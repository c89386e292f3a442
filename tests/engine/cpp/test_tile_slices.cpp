// test_tile_slices.cpp: the slices of each row of a tile against those of single leaves
// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"
#include "samples.hpp"
#include "scoring/tile_slices.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr std::size_t stride = 3 * RowTiles::tile_rows;

// Slices of packed leaves do not tell them.
bool same(const EntrySlice& a, const EntrySlice& b, bool packed) {
    return a.begin == b.begin && a.units == b.units && a.n == b.n && (packed || a.leaf == b.leaf);
}

void check_row(const LeafIndex& index, const leaf_t* leaves, RowSlices found, bool packed) {
    std::size_t n = 0;
    for (std::size_t t = 0; t < index.n_trees(); ++t) {
        const leaf_t leaf = leaves[t * stride];
        if (leaf == no_leaf) continue;
        const EntrySlice expected = index.entries(t, leaf);
        if (expected.n == 0) continue;
        CHECK(n < found.size() && same(found[n], expected, packed));
        ++n;
    }
    CHECK(n == found.size());
}

// Takes the slices of some rows, tile after tile, as readers do.
void check_rows(Random& random, const LeafIndex& index) {
    std::vector<leaf_t> leaves(index.n_trees() * stride);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::size_t n_leaves = index.n_leaves(i / stride);
        leaves[i] = static_cast<leaf_t>(below(random, n_leaves + 1)) - 1;
    }
    const std::optional<PackedLeaves> packed = PackedLeaves::of(index);
    CHECK(packed.has_value());
    std::vector<leaf_t> in_place = leaves;
    packed->pack(0, index.n_trees(), in_place);
    TileSlices slices(index);
    for (std::size_t first = 0; first < stride; first += RowTiles::tile_rows) {
        const std::size_t n = 1 + below(random, RowTiles::tile_rows);
        for (const bool is_packed : {false, true}) {
            const auto& given = is_packed ? in_place : leaves;
            slices.assign(given.data() + first, stride, n, is_packed ? &*packed : nullptr);
            for (std::size_t k = 0; k < n; ++k) {
                check_row(index, leaves.data() + first + k, slices.row(k), is_packed);
            }
        }
    }
}

void slices_are_those_of_the_leaves() {
    Random random(1);
    for (int round = 0; round < 40; ++round) {
        Training rows = random_training(random, 1 + below(random, 300), 1 + below(random, 6),
                                        1 + below(random, 6), 1 + below(random, 4));
        for (double& y : rows.y) y += round % 2 == 0 ? uniform(random) : 0;
        check_rows(random, LeafIndex(rows.rows(), false, 1));
    }
}

}  // namespace

int main() {
    slices_are_those_of_the_leaves();
    return check::finish();
}
