// index/leaf_index.cpp: an index from rows, or from arrays that are checked at once or lazily
// SPDX-License-Identifier: BSD-3-Clause
#include "index/leaf_index.hpp"

#include <utility>

#include "index/leaf_checks.hpp"
#include "index/leaf_index_builder.hpp"

namespace hdicore {

LeafIndex::LeafIndex(const TrainingRows& rows, bool keep_row_weights, unsigned n_threads,
                     Interruption& interruption)
    : LeafIndex([&] {
          LeafIndexBuilder builder(rows, keep_row_weights, n_threads, interruption);
          while (builder.wants_trees()) {
              builder.add({.first = 0, .leaves = rows.leaves, .counts = rows.counts});
              builder.end_pass();
          }
          return builder;
      }()) {}

LeafIndex::LeafIndex(LeafIndexBuilder builder)
    : LeafIndex(builder.take(), builder.n_threads(), builder.interruption()) {}

LeafIndex::LeafIndex(BuiltArrays built, unsigned n_threads, Interruption& interruption)
    : LeafTable(std::move(built.arrays)), row_weights_(std::move(built.row_weights)) {
    tables_ = derive_tables(*this, {max_leaf_size(*this), built.has_ties}, n_threads, interruption);
}

LeafIndex::LeafIndex(LeafIndexArrays arrays, std::string source, Checks checks, unsigned n_threads,
                     Interruption& interruption)
    : LeafTable(std::move(arrays)), checks_(checks), source_(std::move(source)) {
    name_source(source_, [&] {
        check_sizes(*this);
        tables_ = checks == Checks::now
                      ? derive_tables(*this, check_leaves(*this, n_threads, interruption),
                                      n_threads, interruption)
                      : bound_tables(*this);
    });
}

LeafIndex LeafIndex::validated(unsigned n_threads, Interruption& interruption) const {
    return LeafIndex(arrays(), source_, Checks::now, n_threads, interruption);
}

void LeafIndex::check_leaf(std::size_t output, std::size_t tree, leaf_t leaf) const {
    name_source(source_, [&] { hdicore::check_leaf(*this, output, tree, leaf); });
}

}  // namespace hdicore
