// test_leaf_means.cpp: exact moments, steps of any atoms, and leaves found alone or all at once
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "check.hpp"
#include "index/leaf_index.hpp"
#include "samples.hpp"

using namespace hdicore;
using namespace samples;

namespace {

void moments_are_exact() {
    for (const int shift : {narrow_shift, wide_shift}) {
        const mass_t whole = mass_t{1} << shift;
        for (const std::int64_t steps : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 61,
                                         (std::int64_t{1} << 62) - 1, std::int64_t{1} << 62}) {
            MomentSum one;
            one.add(whole, steps);
            CHECK(one.over_tree(shift).steps == steps && one.over_tree(shift).units == whole);
            MomentSum two;
            two.add(1, steps);
            two.add(whole - 1, steps);
            CHECK(two.over_tree(shift).steps == steps && two.over_tree(shift).units == whole);
            MomentSum part;
            part.add(whole / 2 - 1, steps);
            // Of odd numbers a fraction is cut off.
            if (steps % whole == 0) CHECK(part.over_tree(shift).steps == steps / 2 - steps / whole);
            CHECK(part.over_tree(shift).steps <= steps / 2);
        }
    }
}

void steps_begin_at_the_least_atom_and_fit() {
    constexpr double largest = std::numeric_limits<double>::max();
    constexpr double least = std::numeric_limits<double>::denorm_min();
    const double ends[][2] = {{0, 0},         {0, least},  {-largest, largest}, {0, largest},
                              {1, 1.5},       {-3, -2},    {-least, least},     {least, 3 * least},
                              {1e300, 2e300}, {-1e-300, 1}};
    for (const auto& [low, high] : ends) {
        for (const std::size_t n_trees : {std::size_t{1}, std::size_t{100}, max_trees}) {
            const MeanScale scale(low, high, n_trees, narrow_shift);
            const std::int64_t all = scale.steps(high);
            CHECK(scale.steps(low) == 0 && all >= 0);
            CHECK(all <= (std::int64_t{1} << 62) / static_cast<std::int64_t>(n_trees));
            CHECK(low == high ||
                  all >= (std::int64_t{1} << 60) / static_cast<std::int64_t>(n_trees));
            const mass_t tree = mass_t{1} << narrow_shift;
            CHECK(scale.mean({0, tree}) == low && scale.mean({all, tree}) <= high);
            // Of so many trees steps are longer than the last bit.
            CHECK(n_trees == max_trees || scale.mean({all, tree}) == high);
            CHECK(std::isnan(scale.mean({})));
        }
    }
}

void all_at_once_are_as_each_alone() {
    Random random(8);
    for (int round = 0; round < 200; ++round) {
        Training training =
            random_training(random, 1 + below(random, 60), 1 + below(random, 5), 6, 2);
        if (round % 3 == 1) {
            for (std::size_t i = 0; i < training.n_rows; ++i) {
                training.weights.push_back(0.1 + uniform(random));
            }
        }
        TrainingRows rows = training.rows();
        rows.pooled = round % 4 == 1;
        const LeafIndex index(rows, false, 1);
        const LeafMeans means(index, 1 + static_cast<unsigned>(round % 3), Interruption::never());
        for (std::size_t o = 0; o < 2; ++o) {
            const MeanScale scale = mean_scale(index, o);
            for (std::size_t t = 0; t < index.n_trees(); ++t) {
                const std::int64_t* steps = means.steps(index, o, t);
                CHECK(steps[no_leaf] == -1);
                for (leaf_t leaf = 0; static_cast<std::size_t>(leaf) < index.n_leaves(t); ++leaf) {
                    const MeanSum alone = mean_of_leaf(index, scale, o, t, leaf);
                    CHECK(steps[leaf] == (alone.units == 0 ? -1 : alone.steps));
                    CHECK(!rows.pooled || means.units(index, o, t)[leaf] == alone.units);
                    CHECK(rows.pooled || alone.units == 0 ||
                          alone.units == mass_t{1} << index.shift());
                }
            }
        }
    }
}

void they_are_made_when_an_eighth_was_asked_for() {
    Random random(9);
    const LeafIndex index(random_training(random, 4000, 3, 160).rows(), false, 1);
    const std::size_t before = index.nbytes();
    const auto means = [&](std::size_t n_rows) {
        return index.means(n_rows, 1, Interruption::never());
    };
    CHECK(means(5) == nullptr && means(14) == nullptr && index.nbytes() == before);
    const LeafMeans* made = means(1);
    CHECK(made != nullptr && means(1) == made);
    CHECK(index.nbytes() == before + made->nbytes() && made->nbytes() == 8 * 3 * 161);
}

}  // namespace

int main() {
    moments_are_exact();
    steps_begin_at_the_least_atom_and_fit();
    all_at_once_are_as_each_alone();
    they_are_made_when_an_eighth_was_asked_for();
    return check::finish();
}
