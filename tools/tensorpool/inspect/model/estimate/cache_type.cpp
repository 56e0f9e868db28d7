#include "inspect/model/estimate/cache_type.hpp"

#include <fmt/format.h>

#include <tensorpool/model_estimate.hpp>

#include "common/printable.hpp"

namespace tensorpool::command::model {

std::string cache_type_names() {
    std::string names;
    for (const KvCacheType& type : kv_cache_types()) {
        names += names.empty() ? "" : ", ";
        names += type.name;
    }
    return names;
}

std::string problem_of_cache_type(const std::string& name) {
    if (find_kv_cache_type(name) != nullptr) return "";
    return fmt::format("'{}' is not a type of a cache; expected one of {}", printable(name),
                       cache_type_names());
}

}  // namespace tensorpool::command::model
