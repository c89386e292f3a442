// scoring/row_weights.cpp: goes through the rows twice, for the sizes of matrix rows and for values
// SPDX-License-Identifier: BSD-3-Clause
#include "scoring/row_weights.hpp"

#include <memory>
#include <optional>
#include <string>

#include "base/refusal.hpp"
#include "merge/leave_one_out.hpp"
#include "merge/row_counts.hpp"
#include "scoring/row_reader.hpp"
#include "scoring/scorer.hpp"

namespace hdicore {
namespace {

// One thread's complete distributions of rows.
struct RowPmfs {
    RowReader reader;
    Accumulator accumulator;
    RowCounts counts;
    std::optional<LeaveOneOut> leave_one_out;

    RowPmfs(const LeafIndex& index, const LeafSource& source, const Execution& execution,
            std::size_t max_rows)
        : reader(index, source, false, execution.interruption, max_rows),
          accumulator(index, execution.kernels),
          counts(index) {
        if (index.row_weights()) leave_one_out.emplace(index);
    }
};

// Calls use(scratch, row, pmf, slices, left_out) for each row, where left_out is the rank of the
// training row left out.
template <class Use>
void for_each_pmf(const LeafIndex& index, const LeafSource& source,
                  std::span<const std::uint32_t> leave_out, const Execution& execution,
                  const Use& use) {
    const auto make_worker = [&](std::size_t max_rows) {
        const auto scratch = std::make_shared<RowPmfs>(index, source, execution, max_rows);
        return [&, scratch](std::size_t begin, std::size_t end) {
            Accumulator& accumulator = scratch->accumulator;
            const auto answer = [&](SameRows rows, std::size_t output, RowSlices slices,
                                    RowSlices next) {
                accumulator.prefetch(next);
                Pmf pmf = accumulator.read_empty();
                if (leave_out.empty()) pmf = merge_whole(accumulator, output, slices);
                for (std::size_t k = 0; k < rows.size(); ++k) {
                    if (k > 0) execution.interruption.check();
                    rank_t left_out = RowCounts::none;
                    if (!leave_out.empty()) {
                        LeaveOneOut& without = *scratch->leave_one_out;
                        const std::uint32_t row = leave_out[rows[k]];
                        pmf = without.merge(accumulator, output, slices, row);
                        left_out = without.rank(output, row);
                    }
                    use(*scratch, rows[k], pmf, slices, left_out);
                }
            };
            scratch->reader.read(begin, end, answer);
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), execution, make_worker);
}

// A matrix row for each row of `source`. fill(scratch, pmf, slices, left_out, values) writes the
// values of one.
template <class T, class Fill>
CsrMatrix<T> matrix_of(const LeafIndex& index, const LeafSource& source,
                       std::span<const std::uint32_t> leave_out, const Execution& execution,
                       const char* name, const Fill& fill) {
    if (index.n_outputs() != 1) {
        refuse(std::string(name) + " needs an index of one output");
    }
    check_leave_out(index, leave_out, source.n_rows());
    CsrMatrix<T> matrix;
    matrix.indptr.assign(source.n_rows() + 1, 0);
    for_each_pmf(index, source, leave_out, execution,
                 [&](RowPmfs&, std::size_t row, const Pmf& pmf, RowSlices, rank_t) {
                     matrix.indptr[row + 1] = static_cast<std::int64_t>(pmf.size());
                 });
    for (std::size_t i = 0; i < source.n_rows(); ++i) matrix.indptr[i + 1] += matrix.indptr[i];
    matrix.indices.resize(static_cast<std::size_t>(matrix.indptr.back()));
    matrix.data.resize(matrix.indices.size());
    for_each_pmf(
        index, source, leave_out, execution,
        [&](RowPmfs& scratch, std::size_t row, const Pmf& pmf, RowSlices slices, rank_t left_out) {
            const auto at = static_cast<std::size_t>(matrix.indptr[row]);
            // Leaves that somebody else writes to may hold more in the second pass.
            if (at + pmf.size() != static_cast<std::size_t>(matrix.indptr[row + 1])) {
                refuse("the rows changed while they were read");
            }
            const std::span<const rank_t> ranks = scratch.accumulator.ranks();
            for (std::size_t k = 0; k < ranks.size(); ++k) {
                matrix.indices[at + k] = static_cast<std::int32_t>(ranks[k]);
            }
            fill(scratch, pmf, slices, left_out, matrix.data.data() + at);
        });
    return matrix;
}

}  // namespace

CsrMatrix<double> atom_weights(const LeafIndex& index, const LeafSource& source,
                               std::span<const std::uint32_t> leave_out,
                               const Execution& execution) {
    const auto fill = [](RowPmfs&, const Pmf& pmf, RowSlices, rank_t, double* weights) {
        for (std::size_t k = 0; k < pmf.size(); ++k) {
            weights[k] = static_cast<double>(pmf.cumulative[k + 1] - pmf.cumulative[k]) /
                         static_cast<double>(pmf.total());
        }
    };
    return matrix_of<double>(index, source, leave_out, execution, "weights", fill);
}

CsrMatrix<std::int64_t> proximities(const LeafIndex& index, const LeafSource& source,
                                    std::span<const std::uint32_t> leave_out,
                                    const Execution& execution) {
    const auto fill = [](RowPmfs& scratch, const Pmf&, RowSlices slices, rank_t left_out,
                         std::int64_t* counts) {
        scratch.counts.count(scratch.accumulator.ranks(), slices, left_out, counts);
    };
    return matrix_of<std::int64_t>(index, source, leave_out, execution, "proximities", fill);
}

void count_samples(const LeafIndex& index, const LeafSource& source, const Execution& execution,
                   std::span<std::int64_t> counts) {
    const bool has_copies = index.arrays().copies.index() != 0;
    const auto make_worker = [&](std::size_t max_rows) {
        const auto reader =
            std::make_shared<RowReader>(index, source, false, execution.interruption, max_rows);
        return [&, reader](std::size_t begin, std::size_t end) {
            reader->read(begin, end,
                         [&](SameRows rows, std::size_t output, RowSlices slices, RowSlices) {
                             if (output > 0) return;
                             std::size_t n = 0;
                             for (const EntrySlice& slice : slices) {
                                 n += slice.n;
                                 if (!has_copies) continue;
                                 for (std::uint32_t e = 0; e < slice.n; ++e) {
                                     n += index.copies(slice.begin + e) - 1;
                                 }
                             }
                             for (std::size_t k = 0; k < rows.size(); ++k) {
                                 counts[rows[k]] = static_cast<std::int64_t>(n);
                             }
                         });
        };
    };
    for_each_block(source.n_rows(), index.n_trees(), source.block_rows(), execution, make_worker);
}

}  // namespace hdicore
