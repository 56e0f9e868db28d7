#include "serve/watch/history_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "serve/json.hpp"

namespace tensorpool::command::serve {

HistoryJson::HistoryJson(std::uint64_t process, double start, std::vector<ProcessSample> faults)
    : text_(fmt::format(R"({{"process":{},"pools":[)", process)),
      start_(start),
      faults_(std::move(faults)) {}

void HistoryJson::add(std::uint64_t pool, const std::string& name,
                      std::span<const PoolSample> samples) {
    if (!first_) text_ += ',';
    first_ = false;
    text_ += fmt::format(R"({{"id":{},"name":{},"t":[)", pool, json_string(name));
    add_times(samples);
    text_ += R"(],"series":{)";
    for (std::size_t i = 0; i < series_count; ++i) add_series(i, samples);
    add_faults(samples);
    text_ += "}}";
}

void HistoryJson::add_times(std::span<const PoolSample> samples) {
    const char* comma = "";
    for (const PoolSample& sample : samples) {
        fmt::format_to(std::back_inserter(text_), "{}{:.2f}", comma, start_ + sample.time / 100.0);
        comma = ",";
    }
}

void HistoryJson::add_series(std::size_t series, std::span<const PoolSample> samples) {
    text_ += fmt::format(R"("{}":[)", pool_series[series].name);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        add_value(i == 0, samples[i].values[series]);
    }
    text_ += "],";
}

/// In the thinned part, samples of a pool may be slightly newer than those of the process.
void HistoryJson::add_faults(std::span<const PoolSample> samples) {
    text_ += R"("faults":[)";
    auto next = faults_.begin();
    float value = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t i = 0; i < samples.size(); ++i) {
        while (next != faults_.end() && next->time <= samples[i].time) value = (next++)->values[0];
        add_value(i == 0, value);
    }
    text_ += ']';
}

void HistoryJson::add_value(bool first, float value) {
    if (!first) text_ += ',';
    if (std::isfinite(value)) {
        fmt::format_to(std::back_inserter(text_), "{}", value);
    } else {
        text_ += "null";
    }
}

std::string HistoryJson::take() {
    return std::move(text_) + "]}";
}

}  // namespace tensorpool::command::serve
