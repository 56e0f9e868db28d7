#pragma once

/// @file
/// The heap profiles of processes as metrics for Prometheus.

#include <vector>

#include <tensorpool/metrics.hpp>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::profile {

/// Collects the lines of code that hold the most memory. The number of time series stays small:
/// each process has at most `max_lines` lines at a time.
class SiteMetrics {
public:
    static constexpr std::size_t max_lines = 10;
    static constexpr std::size_t max_label_bytes = 120;

    SiteMetrics();
    /// Adds the `max_lines` lines with the most live bytes. Sites with the same line are added up,
    /// so that a line's total never decreases.
    void add(const NamedProfile& named);
    /// Returns the families that have samples.
    std::vector<MetricFamily> families() const;

private:
    MetricFamily live_;
    MetricFamily allocated_;
};

}  // namespace tensorpool::command::profile
