// register_forest.cpp: the Python class Forest
// SPDX-License-Identifier: BSD-3-Clause
#include "arrays.hpp"
#include "bound_classes.hpp"
#include "forest/forest.hpp"
#include "forest/prune.hpp"
#include "forest/split_gains.hpp"
#include "query.hpp"
#include "registration.hpp"
#include "scoring/route.hpp"
#include "stub.hpp"
#include "tree_arrays.hpp"

namespace hdicore::bindings {
namespace {

constexpr std::int64_t max_features = std::numeric_limits<std::int32_t>::max();

BoundForest make_forest(const py::object& children_left, const py::object& children_right,
                        const py::object& feature, const py::object& threshold,
                        const py::object& missing_go_to_left, const py::object& tree_offsets,
                        const py::object& n_features, const py::object& n_threads) {
    const auto left = integers<std::int64_t>(children_left, "children_left");
    const auto right = integers<std::int64_t>(children_right, "children_right");
    const auto features = integers<std::int64_t>(feature, "feature");
    const auto thresholds = reals(threshold, "threshold");
    const auto missing = integers<std::uint8_t>(missing_go_to_left, "missing_go_to_left");
    const auto offsets = integers<std::int64_t>(tree_offsets, "tree_offsets");
    const TreeArrays trees{.children_left = span_of(left),
                           .children_right = span_of(right),
                           .feature = span_of(features),
                           .threshold = span_of(thresholds),
                           .missing_go_to_left = span_of(missing),
                           .tree_offsets = span_of(offsets),
                           .n_features = whole_number(n_features, "n_features", 1, max_features)};
    const unsigned threads = thread_count(n_threads);
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return {engine_of(Forest(trees, threads, interruption))};
}

// The columns of one tree, by their names.
TreeColumns tree_columns(const py::handle& tree, std::vector<py::array>& keep) {
    std::optional<py::ssize_t> n_nodes;
    const auto column = [&]<class T>(const char* name, Column<T>& values) {
        values = column_of<T>(tree_array(tree, name), name, keep);
        if (!n_nodes) n_nodes = keep.back().size();
        check_shape(keep.back(), name, {*n_nodes});
    };
    TreeColumns columns{};
    column("children_left", columns.children_left);
    column("children_right", columns.children_right);
    column("feature", columns.feature);
    column("threshold", columns.threshold);
    column("missing_go_to_left", columns.missing_go_to_left);
    columns.n_nodes = static_cast<std::size_t>(*n_nodes);
    return columns;
}

BoundForest from_trees(const py::sequence& trees, const py::object& n_features,
                       const py::object& n_threads) {
    std::vector<py::array> keep;
    std::vector<TreeColumns> columns;
    for (const py::handle& tree : trees) columns.push_back(tree_columns(tree, keep));
    const std::int64_t n = whole_number(n_features, "n_features", 1, max_features);
    const unsigned threads = thread_count(n_threads);
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return {engine_of(Forest(columns, n, threads, interruption))};
}

// Nodes as words of 32 bits, (n_nodes, 2) or (n_nodes, 4).
Nodes adopt_nodes(const py::array& nodes, bool copy) {
    constexpr py::ssize_t narrow = sizeof(NarrowNode) / sizeof(std::uint32_t);
    constexpr py::ssize_t wide = sizeof(WideNode) / sizeof(std::uint32_t);
    if (nodes.ndim() != 2 || (nodes.shape(1) != narrow && nodes.shape(1) != wide)) {
        throw py::value_error("nodes must have shape (n_nodes, 2) or (n_nodes, 4), got " +
                              shape_text(shape_of(nodes)));
    }
    if (nodes.shape(1) == wide) return adopt<std::uint32_t, WideNode>(nodes, "nodes", copy, 2);
    return adopt<std::uint32_t, NarrowNode>(nodes, "nodes", copy, 2);
}

BoundForest forest_from_arrays(const py::dict& arrays, const py::object& n_features, bool copy,
                               const py::object& source, bool lazy) {
    std::string name = source_text(source);
    check_entries(arrays, {"nodes", "tree_offsets", "leaf_nodes"});
    Nodes nodes = adopt_nodes(entry(arrays, "nodes"), copy);
    auto tree_offsets = adopt<offset_t>(entry(arrays, "tree_offsets"), "tree_offsets", copy);
    auto leaf_nodes = adopt<std::int32_t>(entry(arrays, "leaf_nodes"), "leaf_nodes", copy);
    const std::int64_t n = whole_number(n_features, "n_features", 1, max_features);
    Interruption interruption(pending_signals());
    const py::gil_scoped_release no_gil;
    return {engine_of(Forest(std::move(nodes), std::move(tree_offsets), std::move(leaf_nodes), n,
                             std::move(name), checks_of(lazy), 1, interruption))};
}

BoundForest forest_from_state(const py::tuple& state) {
    return forest_from_arrays(state[0].cast<py::dict>(), state[1], true, py::none(), false);
}

py::dict arrays_of_forest(const py::object& self) {
    const Forest& forest = validated(self.cast<const BoundForest&>().engine);
    py::dict arrays;
    std::visit(
        [&]<class Node>(const Array<Node>& nodes) {
            arrays["nodes"] = view_of(reinterpret_cast<const std::uint32_t*>(nodes.data()),
                                      {static_cast<py::ssize_t>(nodes.size()),
                                       static_cast<py::ssize_t>(sizeof(Node) / 4)},
                                      self);
        },
        forest.nodes());
    arrays["tree_offsets"] = view_of(forest.tree_offsets(), self);
    arrays["leaf_nodes"] = view_of(forest.leaf_nodes(), self);
    return arrays;
}

py::array_t<leaf_t> route(const BoundForest& self, const py::object& X, bool node_ids,
                          const py::object& n_threads, const py::object& out) {
    py::array keep;
    const RowMatrix rows = row_matrix(X, keep);
    const unsigned threads = thread_count(n_threads);
    const Forest& forest = for_rows(self.engine, rows.n_rows(), threads);
    auto result = output_array<leaf_t>(
        out, {static_cast<py::ssize_t>(rows.n_rows()), static_cast<py::ssize_t>(forest.n_trees())});
    check_disjoint(result, "out", keep, "X");
    const Matrix<leaf_t> leaves = flat_matrix(result, forest.n_trees());
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        route_all(forest, rows, node_ids, threads, leaves, interruption);
    }
    return result;
}

// A permutation of n rows; empty for None.
std::vector<std::uint32_t> permutation(const py::object& object, std::size_t n) {
    if (object.is_none()) return {};
    const auto order = integers<std::uint32_t>(object, "order");
    check_shape(order, "order", {static_cast<py::ssize_t>(n)});
    std::vector<std::uint32_t> rows(order.data(), order.data() + order.size());
    std::vector<bool> met(n, false);
    for (const std::uint32_t row : rows) {
        if (row >= n || met[row]) {
            throw py::value_error("order must hold each row number below " + std::to_string(n) +
                                  " once, got " + std::to_string(row) + (row >= n ? "" : " twice"));
        }
        met[row] = true;
    }
    return rows;
}

// Filled tree by tree: each column is one run of memory.
py::object leaves_of_trees(const BoundForest& self, const py::object& X, const py::object& first,
                           const py::object& last, const py::object& order,
                           const py::object& n_threads) {
    py::array keep;
    const RowMatrix rows = row_matrix(X, keep);
    const unsigned threads = thread_count(n_threads);
    const Forest& forest = for_rows(self.engine, rows.n_rows(), threads);
    const auto n_trees = static_cast<std::int64_t>(forest.n_trees());
    const std::int64_t begin = whole_number(first, "first", 0, n_trees);
    const std::int64_t end = whole_number(last, "last", begin, n_trees);
    const std::vector<std::uint32_t> rows_in_order = permutation(order, rows.n_rows());
    py::array_t<leaf_t> result(
        Shape{static_cast<py::ssize_t>(end - begin), static_cast<py::ssize_t>(rows.n_rows())});
    const Matrix<leaf_t> leaves{result.mutable_data(), static_cast<std::size_t>(end - begin),
                                rows.n_rows()};
    Interruption interruption(pending_signals());
    {
        const py::gil_scoped_release no_gil;
        route_trees(forest, rows, static_cast<std::size_t>(begin), rows_in_order, threads, leaves,
                    interruption);
    }
    return result.attr("T");
}

py::tuple pruned(const BoundForest& self, const py::object& leaf_sizes,
                 const py::object& min_samples_leaf, const py::object& n_threads) {
    const auto sizes = integers<std::int64_t>(leaf_sizes, "leaf_sizes");
    check_ndim(sizes, "leaf_sizes", 1);
    constexpr std::int64_t max = std::int64_t{1} << 62;
    const std::int64_t min_size = whole_number(min_samples_leaf, "min_samples_leaf", 1, max);
    const unsigned threads = thread_count(n_threads);
    const Forest& forest = validated(self.engine);
    Interruption interruption(pending_signals());
    const auto make = [&] {
        const py::gil_scoped_release no_gil;
        return prune(forest, span_of(sizes), min_size, threads, interruption);
    };
    PrunedForest found = make();
    const py::array_t<leaf_t> new_leaves(static_cast<py::ssize_t>(found.new_leaves.size()),
                                         found.new_leaves.data());
    return py::make_tuple(BoundForest{engine_of(std::move(found.forest))}, new_leaves);
}

py::array_t<double> gains_of_splits(const BoundForest& self, const py::object& leaf_weights,
                                    const py::object& leaf_means) {
    const auto weights = reals(leaf_weights, "leaf_weights");
    const auto means = reals(leaf_means, "leaf_means");
    const Forest& forest = validated(self.engine);
    check_shape(weights, "leaf_weights", {static_cast<py::ssize_t>(forest.n_leaves())});
    check_shape(means, "leaf_means", {static_cast<py::ssize_t>(forest.n_leaves())});
    Interruption interruption(pending_signals());
    const auto gains = [&] {
        const py::gil_scoped_release no_gil;
        return split_gains(forest, span_of(weights), span_of(means), interruption);
    }();
    return py::array_t<double>(static_cast<py::ssize_t>(gains.size()), gains.data());
}

py::array_t<std::int64_t> leaves_per_tree_of(const BoundForest& self) {
    const Forest& forest = self.current();
    py::array_t<std::int64_t> result(static_cast<py::ssize_t>(forest.n_trees()));
    for (std::size_t t = 0; t < forest.n_trees(); ++t) {
        result.mutable_data()[t] = static_cast<std::int64_t>(forest.n_leaves(t));
    }
    return result;
}

}  // namespace

void register_forest(py::module_& module) {
    using Stub = stub::Forest;
    py::class_<BoundForest> cls(module, Stub::name, Stub::doc);
    Stub::init(cls, constructor(&make_forest));
    Stub::from_trees(cls, &from_trees);
    Stub::from_arrays(cls, &forest_from_arrays);
    Stub::arrays(cls, &arrays_of_forest);
    Stub::apply(cls, [](const BoundForest& self, const py::object& X, const py::object& n_threads,
                        const py::object& out) { return route(self, X, true, n_threads, out); });
    Stub::leaves(cls, [](const BoundForest& self, const py::object& X, const py::object& n_threads,
                         const py::object& out) { return route(self, X, false, n_threads, out); });
    Stub::leaves_of_trees(cls, &leaves_of_trees);
    Stub::prune(cls, &pruned);
    Stub::split_gains(cls, &gains_of_splits);
    Stub::n_trees(cls, [](const BoundForest& f) { return f.current().n_trees(); });
    Stub::n_features(cls, [](const BoundForest& f) { return f.current().n_features(); });
    Stub::n_leaves(cls, &leaves_per_tree_of);
    Stub::leaf_nodes(cls, [](const py::object& self) {
        return view_of(validated(self.cast<const BoundForest&>().engine).leaf_nodes(), self);
    });
    Stub::nbytes(cls, [](const BoundForest& f) { return f.current().nbytes(); });
    cls.def("__getstate__",
            [](const py::object& self) {
                return py::make_tuple(arrays_of_forest(self), self.attr("n_features"));
            })
        .def("__setstate__", constructor(&forest_from_state),
             py::detail::is_new_style_constructor())
        .def("__reduce__", &reduced);
}

}  // namespace hdicore::bindings
