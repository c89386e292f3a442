// test_equal_rows.cpp: rows said to be equal are, whatever their hashes; each is listed once
// SPDX-License-Identifier: BSD-3-Clause
#include <map>
#include <numeric>

#include "check.hpp"
#include "samples.hpp"
#include "scoring/equal_rows.hpp"

using namespace hdicore;
using namespace samples;

namespace {

using Row = std::vector<std::uint32_t>;

// Finds equal rows, and returns how many are said to be distinct.
std::size_t distinct_of(const std::vector<Row>& rows, std::size_t tile_rows) {
    const std::size_t n_words = rows.front().size();
    const std::size_t n_tiles = (rows.size() + tile_rows - 1) / tile_rows;
    std::vector<std::uint32_t> words(n_tiles * tile_rows * n_words);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t w = 0; w < n_words; ++w) {
            words[(i / tile_rows * n_words + w) * tile_rows + i % tile_rows] = rows[i][w];
        }
    }
    EqualRows equal_rows;
    equal_rows.reserve(n_words, rows.size());
    equal_rows.find({words.data(), n_words, tile_rows}, rows.size());
    std::vector<std::uint32_t> places(equal_rows.distinct().begin(), equal_rows.distinct().end());
    CHECK(std::is_sorted(places.begin(), places.end()));
    std::reverse(places.begin(), places.end());

    std::vector<std::uint32_t> order, begins;
    equal_rows.list(places, order, begins);
    CHECK(begins.size() == places.size() + 1 && begins.front() == 0 &&
          begins.back() == order.size());
    for (std::size_t p = 0; p < places.size(); ++p) {
        CHECK(begins[p] < begins[p + 1] && order[begins[p]] == places[p]);
        for (std::size_t k = begins[p] + 1; k < begins[p + 1]; ++k) {
            CHECK(order[k] > order[k - 1] && rows[order[k]] == rows[places[p]]);
        }
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0u);
    CHECK(order == all);
    return places.size();
}

std::size_t count_distinct(std::vector<Row> rows) {
    std::sort(rows.begin(), rows.end());
    return static_cast<std::size_t>(std::unique(rows.begin(), rows.end()) - rows.begin());
}

std::vector<Row> random_rows(Random& random, std::size_t n, std::size_t n_words,
                             std::size_t n_values) {
    std::vector<Row> rows(n, Row(n_words));
    for (Row& row : rows) {
        for (std::uint32_t& word : row) {
            // As the keys of small whole numbers, which differ in their upper bits.
            word = static_cast<std::uint32_t>(below(random, n_values)) << 22 | 0x80000000u;
        }
    }
    return rows;
}

void all_equal_rows_are_found() {
    Random random(1);
    for (const std::size_t tile_rows : {std::size_t{1}, std::size_t{16}}) {
        for (const std::size_t n_values : {1, 2, 4, 1000}) {
            for (const std::size_t n : {1, 2, 17, 500}) {
                const auto rows = random_rows(random, n, 1 + below(random, 6), n_values);
                CHECK(distinct_of(rows, tile_rows) == count_distinct(rows));
            }
        }
    }
}

// The hash of rows in equal_rows.cpp.
std::uint32_t hash(const Row& row) {
    std::mt19937_64 factors;
    std::uint64_t sum = 0;
    for (const std::uint32_t word : row) sum += word * factors();
    return static_cast<std::uint32_t>(sum >> 32);
}

// Each row once more.
void repeat(std::vector<Row>& rows) {
    const std::vector<Row> once = rows;
    rows.insert(rows.end(), once.begin(), once.end());
}

void rows_of_one_hash_are_told_apart() {
    Random random(2);
    std::map<std::uint32_t, Row> seen;
    std::vector<Row> rows;
    while (rows.size() < 6) {
        const Row row{static_cast<std::uint32_t>(random()), static_cast<std::uint32_t>(random())};
        const auto [found, is_new] = seen.emplace(hash(row), row);
        if (is_new) continue;
        rows.push_back(found->second);
        rows.push_back(row);
    }
    CHECK(hash(rows[0]) == hash(rows[1]) && rows[0] != rows[1]);
    repeat(rows);
    CHECK(distinct_of(rows, 1) == 6);
    CHECK(distinct_of(rows, 16) == 6);
}

// So many want the same slots that not all find one.
void crowded_rows_are_scored_again() {
    Random random(3);
    std::vector<Row> rows;
    while (rows.size() < 40) {
        const Row row{static_cast<std::uint32_t>(random())};
        if (hash(row) % 256 == 255) rows.push_back(row);
    }
    repeat(rows);
    CHECK(distinct_of(rows, 1) == 8 + 2 * 32);
}

}  // namespace

int main() {
    all_equal_rows_are_found();
    rows_of_one_hash_are_told_apart();
    crowded_rows_are_scored_again();
    return check::finish();
}
