// test_leaf_source.cpp: a block holds each row once, equal ones at one place, sorted by leaf
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <set>

#include "check.hpp"
#include "samples.hpp"
#include "scoring/leaf_source.hpp"

using namespace hdicore;
using namespace samples;

namespace {

constexpr std::size_t n_trees = 7;

void check_block(const LeafSource& source, const std::vector<leaf_t>& leaves, std::size_t begin,
                 std::size_t end, std::size_t n_distinct) {
    RowBlock block;
    source.reserve(end - begin, block);
    const std::size_t capacity = block.leaves.capacity();
    source.leaves(begin, end, block, Interruption::never());
    CHECK(block.leaves.capacity() == capacity);
    const std::size_t n = end - begin;
    CHECK(block.order.size() == n && block.leaves.size() >= n_trees * block.stride());
    CHECK(block.n_places() == (n > RowTiles::tile_rows ? n_distinct : n));
    std::vector<std::uint32_t> order = block.order;
    std::sort(order.begin(), order.end());
    for (std::size_t k = 0; k < n; ++k) CHECK(order[k] == k);
    leaf_t last = no_leaf;
    for (std::size_t p = 0; p < block.n_places(); ++p) {
        CHECK(!block.rows_at(p, p + 1).empty());
        for (const std::uint32_t number : block.rows_at(p, p + 1)) {
            const std::size_t row = begin + number;
            for (std::size_t t = 0; t < n_trees; ++t) {
                CHECK(block.leaves[t * block.stride() + p] == leaves[row * n_trees + t]);
            }
            if (n > RowTiles::tile_rows) CHECK(leaves[row * n_trees] >= last);
            last = leaves[row * n_trees];
        }
    }
}

// Of rows of `width` words.
template <class T>
std::size_t count_distinct(const std::vector<T>& words, std::size_t width, std::size_t begin,
                           std::size_t end) {
    std::set<std::vector<T>> rows;
    for (std::size_t i = begin; i < end; ++i) {
        rows.emplace(words.begin() + static_cast<std::ptrdiff_t>(i * width),
                     words.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    }
    return rows.size();
}

void blocks_hold_their_rows() {
    Random random(1);
    const Forest forest(random_trees(random, n_trees, 30).arrays());
    auto rows = random_rows(random, 3 * 200);
    for (float& x : rows) x = std::floor(4 * x) / 4;  // many are equal
    std::vector<std::uint32_t> keys;
    for (const float x : rows) keys.push_back(x != x ? missing_key : key_of(x));
    const std::vector<leaf_t> leaves = leaves_of(forest, rows);
    Training training = random_training(random, 200, n_trees, 1);
    training.leaves = leaves;
    const LeafIndex index(training.rows(), false, 1);
    const RoutedRows routed(forest, {Matrix(rows.data(), 200, 3)});
    const GivenLeaves given(index, Matrix(leaves.data(), 200, index.n_trees()));
    CHECK(routed.n_rows() == 200 && given.n_rows() == 200);
    CHECK(routed.block_rows() > 0 && given.block_rows() > 0);
    for (const auto& [begin, end] :
         {std::pair<std::size_t, std::size_t>{0, 200}, {17, 150}, {3, 4}, {180, 200}}) {
        check_block(routed, leaves, begin, end, count_distinct(keys, 3, begin, end));
        check_block(given, leaves, begin, end, count_distinct(leaves, n_trees, begin, end));
    }
}

void other_rows_and_leaves_are_refused() {
    Random random(2);
    const Forest forest(random_trees(random, n_trees, 30).arrays());
    const std::vector<float> rows(4, 0.5f);
    CHECK_REFUSED(RoutedRows(forest, {Matrix(rows.data(), 1, 4)}), "4 features");
    const LeafIndex index(random_training(random, 50, n_trees, 3).rows(), false, 1);
    for (const leaf_t wrong : {leaf_t{-2}, leaf_t{3}}) {
        std::vector<leaf_t> leaves(2 * n_trees, no_leaf);
        leaves[n_trees + 4] = wrong;
        const GivenLeaves given(index, Matrix(leaves.data(), 2, index.n_trees()));
        RowBlock block;
        given.leaves(0, 1, block, Interruption::never());
        CHECK_REFUSED(given.leaves(0, 2, block, Interruption::never()), "leaves[1, 4]");
    }
}

}  // namespace

int main() {
    blocks_hold_their_rows();
    other_rows_and_leaves_are_refused();
    return check::finish();
}
