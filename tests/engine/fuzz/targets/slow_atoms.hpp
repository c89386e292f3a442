// slow_atoms.hpp: the distribution of a row by its definition, to compare queries with
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/fixed_point.hpp"
#include "index/leaf_index.hpp"

namespace fuzz {

using namespace hdicore;

// The distribution of one row and output, by the definition of the arrays.
struct SlowAtoms {
    std::vector<double> values;
    std::vector<mass_t> cumulative{0};
    std::vector<std::int64_t> counts;  // rows behind each value, over all trees
    std::size_t n_trees = 0;
    mass_t whole;

    SlowAtoms(const LeafIndex& index, std::size_t output, const leaf_t* leaves) {
        const std::span<const double> atoms = index.atoms(output);
        std::vector<mass_t> mass(atoms.size(), 0);
        std::vector<std::int64_t> copies(atoms.size(), 0);
        for (std::size_t t = 0; t < index.n_trees(); ++t) {
            if (leaves[t] == no_leaf) continue;
            const EntrySlice slice = index.entries(output, t, leaves[t]);
            n_trees += slice.n > 0;
            for (std::size_t k = 0; k < slice.n; ++k) {
                const std::size_t e = slice.begin + k;
                mass[index.rank(e)] += units_of(index, e, k, slice.n);
                copies[index.rank(e)] += static_cast<std::int64_t>(index.copies(e));
            }
        }
        whole = static_cast<mass_t>(n_trees) << index.shift();
        for (std::size_t k = 0; k < mass.size(); ++k) {
            if (mass[k] == 0) continue;
            values.push_back(atoms[k]);
            cumulative.push_back(cumulative.back() + mass[k]);
            counts.push_back(copies[k]);
        }
    }

    std::size_t size() const { return values.size(); }
    mass_t total() const { return cumulative.back(); }
    // Two units a tree less than the share, as rounding may take them.
    mass_t needed(double level) const {
        if (level >= 1) return total();
        const auto slack = 2 * static_cast<mass_t>(n_trees);
        if (total() == whole) {
            const auto trees = static_cast<mass_t>(n_trees);
            return std::max<mass_t>(
                1, trees * std::llround(level * static_cast<double>(whole / trees)) - slack);
        }
        return std::max<mass_t>(1, std::llround(level * static_cast<double>(total())) - slack);
    }
    double first_reaching(double level) const {
        std::size_t k = 0;
        while (cumulative[k + 1] < needed(level)) ++k;
        return values[k];
    }
    bool holds(double value) const {
        return std::binary_search(values.begin(), values.end(), value);
    }
    mass_t mass_between(double lower, double upper) const {
        mass_t mass = 0;
        for (std::size_t k = 0; k < size(); ++k) {
            if (values[k] >= lower && values[k] <= upper) mass += cumulative[k + 1] - cumulative[k];
        }
        return mass;
    }
    double least_width(double coverage) const {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0, j = 0; i < size(); ++i) {
            while (j < size() && cumulative[j + 1] - cumulative[i] < needed(coverage)) ++j;
            if (j == size()) break;
            least = std::min(least, values[j] - values[i]);
        }
        return least;
    }

  private:
    static mass_t units_of(const LeafIndex& index, std::size_t entry, std::size_t k,
                           std::size_t n) {
        return std::visit(
            [&]<class Units>(const Units& units) {
                if constexpr (std::is_same_v<Units, std::monostate>) {
                    return floor_units(k + 1, n, narrow_shift) - floor_units(k, n, narrow_shift);
                } else {
                    return static_cast<mass_t>(units[entry]);
                }
            },
            index.arrays().units);
    }
};

}  // namespace fuzz
