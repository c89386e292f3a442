// index_arrays.cpp: fuzzes LeafIndex from arrays, as a model file hands them over, and its queries
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "array_copy.hpp"
#include "queries.hpp"
#include "training.hpp"

namespace {

using namespace fuzz;

void poke_one(Input& in, ArrayCopy& copy) {
    const std::size_t how = in.below(8);
    const auto change = [&]<class Values>(Values& values) {
        if constexpr (!std::is_same_v<Values, std::monostate>) {
            if (how == 0) return in.resize(values);
            if (how > 2) return in.poke(values);
            // Ranks, entries and leaves end where other arrays do.
            const std::size_t limits[] = {copy.atoms.size(), copy.leaf_begin.size(),
                                          copy.leaf_offsets.size(), copy.tree_begin.size()};
            in.poke_near(values, limits[in.below(std::size(limits))]);
        }
    };
    switch (in.below(10)) {
        case 0:
            return change(copy.leaf_offsets);
        case 1:
            return change(copy.atom_offsets);
        case 2:
            return change(copy.tree_begin);
        case 3:
            return change(copy.atoms);
        case 4:
            return change(copy.leaf_begin);
        case 5:
            return std::visit(change, copy.ranks);
        case 6:
            return std::visit(change, copy.units);
        case 7:
            return std::visit(change, copy.copies);
        case 8:
            copy.pooled = !copy.pooled;
            return;
        default:
            return change(copy.leaf_mask);
    }
}

// The same index in wider numbers: ranks of 32 bits, units of 40.
void widen(Input& in, ArrayCopy& copy) {
    if (in.one_in(2)) {
        copy.ranks = std::visit(
            [](const auto& ranks) { return std::vector<rank_t>(ranks.begin(), ranks.end()); },
            copy.ranks);
    }
    if (copy.units.index() == 1 && in.one_in(2)) {
        std::vector<std::uint64_t> wide;
        for (const std::uint32_t units : std::get<1>(copy.units)) {
            wide.push_back(std::uint64_t{units} << (wide_shift - narrow_shift));
        }
        copy.units = wide;
    }
}

// The same arrays, of which each query checks the leaves that it reads.
void check_lazily(Input& in, const ArrayCopy& copy, bool proper) {
    std::optional<LeafIndex> index;
    const std::string reason =
        refusal([&] { index.emplace(copy.arrays(), "file", Checks::lazily); });
    if (!index) {
        REQUIRE(!proper && reason.starts_with("file: "));
        return;
    }
    if (proper) return check_queries(*index, in);
    const Question question(in);
    const std::vector<leaf_t> leaves = some_leaves(in, *index);
    const std::size_t n_rows = leaves.size() / index->n_trees();
    const GivenLeaves source(*index, Matrix(leaves.data(), n_rows, index->n_trees()));
    const Execution run{1 + static_cast<unsigned>(in.below(2))};
    refusal([&] { ask_all(*index, source, {}, question, run); });
    refusal([&] { ask_ends(*index, source, question, run); });
    refusal([&] { atom_weights(*index, source, {}, run); });
    refusal([&] { proximities(*index, source, {}, run); });
    const std::string whole = refusal([&] { index->validated(2, Interruption::never()); });
    REQUIRE(whole.starts_with("file: "));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input in(data, size);
    const samples::Training training = some_training(in);
    ArrayCopy copy(LeafIndex(some_rows(in, training), false, 1).arrays());
    if (in.one_in(4)) widen(in, copy);
    const std::size_t n_pokes = in.below(4);
    for (std::size_t k = 0; k < n_pokes; ++k) poke_one(in, copy);

    std::optional<LeafIndex> index;
    const std::string reason = refusal([&] { index.emplace(copy.arrays()); });
    REQUIRE(reason.empty() || n_pokes > 0);
    check_lazily(in, copy, index.has_value());
    if (!index) return 0;
    REQUIRE(ArrayCopy(index->arrays()) == copy);
    check_queries(*index, in);
    return 0;
}
