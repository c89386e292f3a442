// test_tile_slices.cpp: the slices of each row and output against those of single leaves
// SPDX-License-Identifier: BSD-3-Clause
#include "check.hpp"
#include "samples.hpp"
#include "scoring/tile_slices.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr std::size_t max_rows = 3 * RowTiles::tile_rows;

// Slices of packed leaves do not tell them.
bool same(const EntrySlice& a, const EntrySlice& b, bool packed) {
    return a.begin == b.begin && a.units == b.units && a.n == b.n && (packed || a.leaf == b.leaf);
}

void check_row(const LeafIndex& index, std::size_t output, const std::vector<leaf_t>& leaves,
               std::size_t k, RowSlices found, bool packed) {
    std::size_t n = 0;
    for (std::size_t t = 0; t < index.n_trees(); ++t) {
        const leaf_t leaf = leaves[t * max_rows + k];
        if (leaf == no_leaf) continue;
        const EntrySlice expected = index.entries(output, t, leaf);
        if (expected.n == 0) continue;
        CHECK(n < found.size() && same(found[n], expected, packed));
        ++n;
    }
    CHECK(n == found.size());
}

// Takes the slices of some rows, output by output, as readers do.
void check_rows(Random& random, const LeafIndex& index) {
    std::vector<leaf_t> leaves(index.n_trees() * max_rows);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const std::size_t n_leaves = index.n_leaves(i / max_rows);
        leaves[i] = static_cast<leaf_t>(below(random, n_leaves + 1)) - 1;
    }
    const std::optional<PackedLeaves> packed = PackedLeaves::of(index);
    CHECK(packed.has_value() == (index.n_outputs() == 1 || index.tables().outputs_begin_alike));
    std::vector<leaf_t> in_place = leaves;
    if (packed) packed->pack(0, index.n_trees(), in_place);
    TileSlices slices(index, max_rows);
    for (const std::size_t n : {max_rows, RowTiles::tile_rows + 1, std::size_t{3}}) {
        for (const bool is_packed : {false, packed.has_value()}) {
            for (std::size_t o = 0; o < index.n_outputs(); ++o) {
                const bool moves_on = o > 0 && index.tables().outputs_begin_alike;
                if (!moves_on && is_packed) {
                    slices.assign(o, in_place.data(), max_rows, n, &*packed);
                } else if (!moves_on) {
                    slices.assign(o, leaves.data(), max_rows, n);
                }
                for (std::size_t k = 0; k < n; ++k) {
                    if (moves_on) slices.next_output(k);
                    check_row(index, o, leaves, k, slices.row(k), is_packed);
                }
            }
        }
    }
}

// Rows taken at once: a tile with one output, else full tiles, and fewer the more trees there are.
void rows_at_once_follow_from_outputs_and_trees() {
    Random random(3);
    const auto rows_at_once = [&](std::size_t n_trees, std::size_t n_outputs) {
        const Training rows = random_training(random, 4, n_trees, 2, n_outputs);
        return TileSlices::preferred_rows(LeafIndex(rows.rows(), false, 1));
    };
    CHECK(rows_at_once(50, 1) == RowTiles::tile_rows);
    CHECK(rows_at_once(50, 2) == 3488);
    CHECK(rows_at_once(100, 3) == 1744);
    CHECK(rows_at_once(20000, 2) == RowTiles::tile_rows);
}

void slices_are_those_of_the_leaves() {
    Random random(1);
    int n_alike = 0;
    for (int round = 0; round < 40; ++round) {
        Training rows = random_training(random, 1 + below(random, 300), 1 + below(random, 6),
                                        1 + below(random, 6), 1 + below(random, 4));
        // Where rows of a leaf share targets, each leaf and output has entries of its own.
        for (double& y : rows.y) y += round % 2 == 0 ? uniform(random) : 0;
        const LeafIndex index(rows.rows(), false, 1);
        CHECK(index.tables().outputs_begin_alike == index.arrays().uniform());
        n_alike += index.tables().outputs_begin_alike && index.n_outputs() > 1;
        check_rows(random, index);
    }
    CHECK(n_alike >= 10 && n_alike <= 30);
}

// No index built here is like this: in the second output a leaf has given an entry to the next.
void outputs_may_differ() {
    Random random(2);
    Training rows{4, 1, 2, {0, 0, 1, 1}, {0, 0, 1, 1, 2, 2, 3, 3}, {}, {}};
    LeafIndexArrays arrays = LeafIndex(rows.rows(), false, 1).arrays();
    std::vector<std::uint32_t> begin(arrays.leaf_begin.view().begin(),
                                     arrays.leaf_begin.view().end());
    CHECK(begin == (std::vector<std::uint32_t>{0, 2, 4, 0, 2, 4}));
    begin[4] = 1;
    arrays.leaf_begin = Array(std::move(begin));
    const LeafIndex index(std::move(arrays));
    CHECK(!index.tables().outputs_begin_alike);
    check_rows(random, index);
}

}  // namespace

int main() {
    slices_are_those_of_the_leaves();
    outputs_may_differ();
    rows_at_once_follow_from_outputs_and_trees();
    return check::finish();
}
