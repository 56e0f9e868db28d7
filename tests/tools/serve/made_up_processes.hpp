#pragma once

/// @file
/// Simulated processes that a test controls.

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve::testing {

struct MadeUpProcess {
    std::string name = "made-up";
    bool listed = true;
    bool running = true;
    std::string problem = "";  ///< not "": cannot be read
    std::string refusal = "";  ///< not "": attaching fails, although the list shows no problem
    ProcessSnapshot snapshot = {};
    std::vector<TimelineEntry> entries = {};
    HeapProfile profile = {};
    int attached = 0;  ///< how often a reader attached
};

inline PoolStatistics made_up_pool(std::uint64_t id, const std::string& name) {
    PoolStatistics pool;
    pool.id = id;
    std::strncpy(pool.name, name.c_str(), sizeof pool.name - 1);
    pool.in_use_bytes = 1000 * id;
    pool.capacity_bytes = 5000 * id;
    return pool;
}

class MadeUpReader final : public Process {
public:
    explicit MadeUpReader(MadeUpProcess& process) : process_(process) {}

    bool is_running() const override { return process_.running; }
    ProcessSnapshot snapshot() override {
        if (!process_.running) throw AttachError(AttachFailure::ended, "it ended");
        return process_.snapshot;
    }
    HeapProfile heap_profile() override {
        if (!process_.running) throw AttachError(AttachFailure::ended, "it ended");
        return process_.profile;
    }
    TimelinePart entries_since(std::uint64_t number) override {
        TimelinePart part;
        for (const TimelineEntry& entry : process_.entries) {
            if (entry.number > number) part.entries.push_back(entry);
            part.last = entry.number;
        }
        return part;
    }

private:
    MadeUpProcess& process_;
};

class MadeUpProcesses final : public Processes {
public:
    /// Adds a process with one pool, at the present time.
    MadeUpProcess& add(std::uint64_t process, const std::string& name = "made-up") {
        MadeUpProcess& made_up = all[process];
        made_up.name = name;
        made_up.snapshot.process = process;
        made_up.snapshot.process_name = name;
        made_up.snapshot.pools = {made_up_pool(1, "pool")};
        return made_up;
    }

    std::vector<ObservedProcess> list() override {
        std::vector<ObservedProcess> listed;
        for (const auto& [process, made_up] : all) {
            if (!made_up.listed) continue;
            listed.push_back({process, made_up.name, made_up.problem.empty(), made_up.problem});
        }
        return listed;
    }

    std::unique_ptr<Process> attach(std::uint64_t process) override {
        MadeUpProcess& made_up = all.at(process);
        ++made_up.attached;
        if (!made_up.refusal.empty()) {
            throw AttachError(AttachFailure::damaged, made_up.refusal);
        }
        return std::make_unique<MadeUpReader>(made_up);
    }

    /// Ends all processes. They stay in memory, because readers refer to them.
    void end_all() {
        for (auto& [process, made_up] : all) made_up.listed = made_up.running = false;
    }

    std::map<std::uint64_t, MadeUpProcess> all;
};

/// The time of a round at this second, on both clocks.
inline Now at_second(double seconds) {
    constexpr std::uint64_t boot = 1'000'000'000'000;
    constexpr std::uint64_t midnight = 1'800'000'000'000'000'000;
    const auto ns = static_cast<std::uint64_t>(seconds * 1e9);
    return {boot + ns, midnight + ns};
}

inline void set_time(ProcessSnapshot& snapshot, double seconds) {
    snapshot.time_ns = at_second(seconds).steady_ns;
    snapshot.time_unix_ns = at_second(seconds).unix_ns;
}

}  // namespace tensorpool::command::serve::testing
