// calibrated/groups.cpp: labels are sorted once, and then looked up
// SPDX-License-Identifier: BSD-3-Clause
#include "calibrated/groups.hpp"

#include <algorithm>
#include <cmath>

namespace hdicore {

CalibrationGroups::CalibrationGroups(std::optional<std::size_t> feature_,
                                     std::vector<std::optional<double>> labels_,
                                     std::vector<double> q_hat_)
    : feature(feature_),
      labels(std::move(labels_)),
      q_hat(std::move(q_hat_)),
      missing_(labels.size()) {
    for (std::size_t group = 0; group < labels.size(); ++group) {
        const std::optional<double>& label = labels[group];
        if (!label) missing_ = group;
        if (label && !std::isnan(*label)) numbers_.emplace_back(*label, group);
    }
    std::ranges::sort(numbers_);
}

std::size_t CalibrationGroups::find(double label) const noexcept {
    if (std::isnan(label)) return missing_;
    const auto at =
        std::ranges::lower_bound(numbers_, label, {}, &decltype(numbers_)::value_type::first);
    return at != numbers_.end() && at->first == label ? at->second : labels.size();
}

double CalibrationGroups::quantile(std::size_t group, std::size_t j, double common) const noexcept {
    if (group >= labels.size()) return common;
    const double own = q_hat[group * (q_hat.size() / labels.size()) + j];
    return std::isnan(own) ? common : own;
}

}  // namespace hdicore
