// calibrated/stored_calibration.cpp: the array is not trusted; it must end where it says
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/stored_calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>

#include "base/refusal.hpp"

namespace hdicore {
namespace {

// Numbers that are read one after the other.
class Numbers {
  public:
    explicit Numbers(std::span<const double> left) : left_(left) {}

    double next() { return take(1)[0]; }

    std::span<const double> take(std::size_t n) {
        if (n > left_.size()) refuse("it ends too early");
        const auto taken = left_.first(n);
        left_ = left_.subspan(n);
        return taken;
    }

    // A whole number from 0 to `most`.
    std::size_t whole(const char* name, double most) {
        const double number = next();
        if (!(number >= 0 && number <= most) || number != std::floor(number)) {
            refuse(std::string(name) + " must be a whole number from 0 to " +
                   std::to_string(static_cast<std::uint64_t>(most)));
        }
        return static_cast<std::size_t>(number);
    }

    // How many numbers of some kind come later.
    std::size_t count(const char* name) { return whole(name, static_cast<double>(left_.size())); }
    bool truth(const char* name) { return whole(name, 1) == 1; }

    void require_end() const {
        if (!left_.empty()) refuse("it is longer than it says");
    }

  private:
    std::span<const double> left_;
};

bool in_open_unit(double share) noexcept {
    return share > 0 && share < 1;
}

CalibratedLevel next_level(Numbers& numbers) {
    CalibratedLevel level{};
    level.coverage = numbers.next();
    const auto number = static_cast<int>(numbers.whole("kind", 1000));
    const auto is_kind = [&](const KindOfInterval& own) {
        return static_cast<int>(own.kind) == number && own.has_lower && own.has_upper;
    };
    if (std::ranges::none_of(kinds(), is_kind)) refuse("kind must be one with two ends");
    level.kind = static_cast<Kind>(number);
    level.level = numbers.next();
    level.q_hat = numbers.next();
    if (!in_open_unit(level.coverage)) refuse("coverage must be in (0, 1)");
    if (!in_open_unit(level.level)) refuse("level must be in (0, 1)");
    if (!(level.q_hat > -infinity)) {
        refuse("q_hat must be a number or infinite");
    }
    return level;
}

CalibrationGroups next_groups(Numbers& numbers, double feature, std::size_t n_groups,
                              std::size_t n_levels) {
    enum LabelKind : std::size_t { number, missing, text };
    std::optional<std::size_t> place;
    if (feature != -1) {
        constexpr double most = 1 << 30;
        if (!(feature >= 0 && feature < most) || feature != std::floor(feature)) {
            refuse("the feature of groups must be one of the rows");
        }
        place = static_cast<std::size_t>(feature);
    }
    std::vector<std::optional<double>> labels;
    std::set<std::optional<double>> distinct;
    for (std::size_t g = 0; g < n_groups; ++g) {
        const auto kind = static_cast<LabelKind>(numbers.whole("the kind of a label", text));
        const double value = numbers.next();
        if (kind == text) {
            labels.emplace_back(nan);
            continue;
        }
        if (kind == number && std::isnan(value)) refuse("labels of groups must be numbers");
        labels.push_back(kind == missing ? std::nullopt : std::optional(value));
        if (!distinct.insert(labels.back()).second) refuse("labels of groups must be distinct");
    }
    const auto q_hat = numbers.take(n_groups * n_levels);
    if (std::ranges::any_of(q_hat, [](double q) { return std::isinf(q); })) {
        refuse("the quantiles of groups must be finite or NaN");
    }
    return {place, std::move(labels), {q_hat.begin(), q_hat.end()}};
}

}  // namespace

StoredCalibration StoredCalibration::read(std::span<const double> all) {
    Numbers numbers(all);
    if (numbers.next() != version) refuse("it is of another version; upgrade hdicore");
    StoredCalibration found{};
    found.method = static_cast<Method>(numbers.whole("method", 3));
    found.family = static_cast<Family>(numbers.whole("family", 2));
    const std::size_t n_levels = numbers.count("the number of levels");
    found.clip = numbers.truth("clip");
    const bool has_lattice = numbers.truth("whether there is a lattice");
    const std::size_t n_targets = numbers.count("the number of targets");
    const std::size_t n_groups = numbers.count("the number of groups");
    const double feature = numbers.next();
    const std::size_t n_known = numbers.count("the number of levels of a distribution");
    found.low = numbers.next();
    found.high = numbers.next();
    const auto lattice = numbers.take(3);
    if (has_lattice) found.lattice = {lattice[0], lattice[1], lattice[2]};

    for (std::size_t j = 0; j < n_levels; ++j) found.levels.push_back(next_level(numbers));
    const auto at_most = [](const auto& a, const auto& b) { return a.coverage >= b.coverage; };
    if (found.levels.empty() ||
        std::ranges::adjacent_find(found.levels, at_most) != found.levels.end()) {
        refuse("coverages must be one or more and ascend");
    }
    if (found.is_by_folds() && n_groups + n_known > 0) {
        refuse("methods by folds must have no groups and no distribution");
    }
    found.targets = numbers.take(n_targets);
    if (n_groups > 0) found.groups.emplace(next_groups(numbers, feature, n_groups, n_levels));
    found.distribution_levels = numbers.take(n_known);
    found.distribution_scores = numbers.take(n_known);
    numbers.require_end();

    const PostProcess checked = found.postprocess();
    if (n_known > 0) {
        PredictiveDistribution(found.distribution_levels, found.distribution_scores, checked);
    }
    return found;
}

}  // namespace hdicore
