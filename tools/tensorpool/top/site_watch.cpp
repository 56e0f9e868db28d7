#include "top/site_watch.hpp"

#include <chrono>
#include <utility>

namespace tensorpool::command {
namespace {

/// The screen and the keys may wait so long.
constexpr std::chrono::milliseconds patience{100};

}  // namespace

std::optional<profile::NamedProfile> SiteWatch::update(StatisticsReader& reader) {
    if (!naming_.valid()) start(reader.heap_profile());
    if (naming_.wait_for(patience) != std::future_status::ready) return std::nullopt;
    profile::NamedProfile named = naming_.get();
    if (named.profile.process != reader.process()) return std::nullopt;
    return named;
}

void SiteWatch::start(HeapProfile profile) {
    if (names_ == nullptr || process_ != profile.process) {
        names_ = std::make_unique<profile::ProfileNames>();
        process_ = profile.process;
    }
    naming_ = std::async(std::launch::async, [names = names_.get(), profile]() mutable {
        return names->name(std::move(profile), profile::Value::live);
    });
}

}  // namespace tensorpool::command
