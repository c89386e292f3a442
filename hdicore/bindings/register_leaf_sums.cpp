// register_leaf_sums.cpp: the Python functions _relabel, _count_drawn and _out_of_bag_means
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "index/leaf_table.hpp"
#include "registration.hpp"
#include "scoring/leaf_sums.hpp"
#include "stub.hpp"

namespace hdicore::bindings {
namespace {

// Leaves (n_trees, n) and the numbers of leaves (n_trees,), checked but for the leaves themselves.
class GivenRows {
  public:
    GivenRows(const py::object& leaves, const py::object& n_leaves, const py::object& n_threads)
        : n_threads(thread_count(n_threads)), leaves_(integers<leaf_t>(leaves, "leaves")) {
        check_ndim(leaves_, "leaves", 2);
        const auto sizes = integers<std::int64_t>(n_leaves, "n_leaves");
        check_shape(sizes, "n_leaves", {leaves_.shape(0)});
        for (const std::int64_t size : span_of(sizes)) {
            if (size < 0 || size > max_leaves_per_tree) {
                throw py::value_error("n_leaves must lie in [0, 2**28], got " +
                                      std::to_string(size));
            }
            offsets_.push_back(offsets_.back() + size);
        }
    }

    const unsigned n_threads;

    LeavesOfRows rows() const { return {matrix_of(leaves_), offsets_}; }
    Shape shape() const { return {leaves_.shape(0), leaves_.shape(1)}; }
    py::ssize_t n_rows() const { return leaves_.shape(1); }
    py::ssize_t n_leaves() const { return static_cast<py::ssize_t>(offsets_.back()); }

    // Calls use(counts) with a matrix of the same shape.
    template <class Use>
    void with_counts(const py::object& object, const Use& use) const {
        const py::array array = numbers(object, "counts", "biuf");
        check_shape(array, "counts", shape());
        if (holds<std::uint8_t>(array)) {
            run(integers<std::uint8_t>(array, "counts"), use);
        } else {
            run(integers<std::uint32_t>(array, "counts"), use);
        }
    }

  private:
    template <class Count, class Use>
    static void run(const py::array_t<Count>& counts, const Use& use) {
        Interruption interruption(pending_signals());
        const Matrix<const Count> matrix = matrix_of(counts);
        const py::gil_scoped_release no_gil;
        use(matrix, interruption);
    }

    py::array_t<leaf_t> leaves_;
    std::vector<offset_t> offsets_{0};
};

py::array_t<leaf_t> relabelled(const py::object& leaves, const py::object& new_leaves,
                               const py::object& n_leaves, const py::object& n_threads) {
    const GivenRows given(leaves, n_leaves, n_threads);
    const auto numbers = integers<leaf_t>(new_leaves, "new_leaves");
    check_shape(numbers, "new_leaves", {given.n_leaves()});
    py::array_t<leaf_t> result(given.shape());
    const Matrix<leaf_t> filled = flat_matrix(result, static_cast<std::size_t>(given.n_rows()));
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        relabel(given.rows(), span_of(numbers), filled, given.n_threads, interruption);
    }
    return result;
}

py::array_t<std::int64_t> drawn_counted(const py::object& leaves, const py::object& counts,
                                        const py::object& n_leaves, const py::object& n_threads) {
    const GivenRows given(leaves, n_leaves, n_threads);
    py::array_t<std::int64_t> sizes(given.n_leaves());
    const std::span filled = mutable_span_of(sizes);
    given.with_counts(counts, [&](auto matrix, Interruption& interruption) {
        count_drawn(given.rows(), matrix, filled, given.n_threads, interruption);
    });
    return sizes;
}

py::tuple out_of_bag_means(const py::object& leaves, const py::object& counts, const py::object& y,
                           const py::object& n_leaves, const py::object& draw_weight,
                           const py::object& n_threads) {
    const GivenRows given(leaves, n_leaves, n_threads);
    const auto targets = reals(y, "y");
    check_shape(targets, "y", {given.n_rows()});
    py::array_t<double> of_draws;
    if (!draw_weight.is_none()) {
        of_draws = reals(draw_weight, "draw_weight");
        check_shape(of_draws, "draw_weight", {given.n_rows()});
    }
    py::array_t<double> centres(given.n_rows());
    py::array_t<double> n_oob(given.n_rows());
    py::array_t<double> leaf_means(given.n_leaves());
    py::array_t<double> leaf_weight(given.n_leaves());
    const OutOfBagMeans means{mutable_span_of(centres), mutable_span_of(n_oob),
                              mutable_span_of(leaf_means), mutable_span_of(leaf_weight)};
    given.with_counts(counts, [&](auto matrix, Interruption& interruption) {
        find_oob_means(given.rows(), matrix, span_of(targets), span_of(of_draws), means,
                       given.n_threads, interruption);
    });
    return py::make_tuple(centres, n_oob, leaf_means, leaf_weight);
}

}  // namespace

void register_leaf_sums(py::module_& module) {
    stub::relabel(module, &relabelled);
    stub::count_drawn(module, &drawn_counted);
    stub::out_of_bag_means(module, &out_of_bag_means);
}

}  // namespace hdicore::bindings
