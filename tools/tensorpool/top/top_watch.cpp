#include "top/top_watch.hpp"

#include "common/target.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t max_entries = 1024;
/// The screen and the keys may wait so long for names of call sites.
constexpr std::chrono::milliseconds patience{100};

std::vector<WatchedProcess>::iterator find(std::vector<WatchedProcess>& processes,
                                           std::uint64_t number) {
    return std::ranges::find_if(processes, [&](const WatchedProcess& watched) {
        return watched.process.process == number;
    });
}

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

TopWatch::TopWatch(const Settings& settings) {
    data_.awaited = settings.name;
    if (settings.process != 0) {
        chosen_ = std::make_unique<StatisticsReader>(StatisticsReader::attach(settings.process));
        data_.chosen = WatchedProcess{{settings.process, "", true, ""}, {}, {}, false};
    }
    update(View::processes);
}

void TopWatch::update(View view) {
    if (view == View::processes) read_all();
    read_chosen();
    if (view == View::sites) read_sites();
    const bool is_free = !data_.chosen || data_.chosen->ended;
    if (is_free && !data_.awaited.empty()) find_awaited();
}

void TopWatch::choose(std::uint64_t process) {
    data_.chosen.reset();
    data_.sites.reset();
    data_.entries.clear();
    chosen_.reset();
    last_entry_ = 0;
    const auto found = find(data_.processes, process);
    if (found == data_.processes.end()) return;
    try {
        chosen_ = std::make_unique<StatisticsReader>(StatisticsReader::attach(process));
        data_.chosen = *found;
        read_chosen();
    } catch (const AttachError&) {
        found->ended = true;  // the list shows this until the next update
    }
}

/// Returns false if the process can no longer be read.
bool TopWatch::read(WatchedProcess& watched, StatisticsReader& reader) try {
    add_snapshot(watched, reader.snapshot(), data_.highest);
    if (watched.process.name.empty()) watched.process.name = watched.now->process_name;
    return true;
} catch (const AttachError& error) {
    watched.ended = true;
    watched.process.problem = error.what();
    return false;
}

void TopWatch::read_chosen() {
    if (!data_.chosen || data_.chosen->ended) return;
    const bool running = read(*data_.chosen, *chosen_);
    try {
        TimelinePart part = chosen_->entries_since(last_entry_);
        last_entry_ = part.last;
        data_.entries.insert(data_.entries.end(), part.entries.begin(), part.entries.end());
    } catch (const AttachError&) {
        // The timeline is damaged; so are the statistics, which report it.
    }
    if (data_.entries.size() > max_entries) {
        const auto surplus = static_cast<std::ptrdiff_t>(data_.entries.size() - max_entries);
        data_.entries.erase(data_.entries.begin(), data_.entries.begin() + surplus);
    }
    if (!running) chosen_.reset();
}

void TopWatch::read_sites() {
    if (!chosen_) return;
    try {
        if (auto profile = sites_.update(*chosen_)) add_profile(data_, std::move(*profile));
    } catch (const AttachError&) {
        // The process has ended, which the next update notes.
    }
}

void TopWatch::find_awaited() {
    std::vector<ObservedProcess> found = find_by_name(StatisticsReader::list(), data_.awaited);
    std::erase_if(found, [](const ObservedProcess& process) { return !process.readable; });
    if (found.empty()) return;
    // At first, the user chooses among several. Later, the newest replaces the one that ended.
    if (found.size() > 1 && !data_.chosen) return;
    if (find(data_.processes, found.back().process) == data_.processes.end()) read_all();
    choose(found.back().process);
}

void TopWatch::read_all() {
    std::vector<WatchedProcess> processes;
    std::map<std::uint64_t, StatisticsReader> readers;
    for (ObservedProcess& process : StatisticsReader::list()) {
        const std::uint64_t number = process.process;
        WatchedProcess watched{std::move(process), {}, {}, false};
        if (watched.process.readable) {
            const auto known = find(data_.processes, number);
            if (known != data_.processes.end()) watched.now = std::move(known->now);
            auto reader = readers_.extract(number);
            try {
                // A reader whose process id was reused is no longer running, and is replaced.
                if (reader.empty() || !reader.mapped().is_running()) {
                    watched.now.reset();
                    readers.emplace(number, StatisticsReader::attach(number));
                } else {
                    readers.insert(std::move(reader));
                }
                read(watched, readers.at(number));
            } catch (const AttachError& error) {
                watched.process.readable = false;
                watched.process.problem = error.what();
            }
            if (watched.ended) continue;
        }
        processes.push_back(std::move(watched));
    }
    data_.processes = std::move(processes);
    readers_ = std::move(readers);
}

}  // namespace tensorpool::command
