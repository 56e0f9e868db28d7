#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run/descriptor.hpp"

namespace tensorpool::command::run {

/// What a process of the program told: descriptors of its shared memory, or a note.
struct Message {
    pid_t process = 0;
    std::vector<Descriptor> files;
    std::string note;
};

/// Where processes of the program reach us: a socket in the abstract name space (unix(7)), whose
/// name is random. Only processes of this user are heard, and each says one thing.
class Observer {
public:
    /// Throws CommandError.
    Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// For TENSORPOOL_OBSERVER.
    const std::string& name() const noexcept { return name_; }
    /// Can be read when there may be something to take.
    int descriptor() const noexcept { return events_.number(); }
    /// Takes what has come. Never waits.
    void take(const std::function<void(Message)>& use);
    /// How many could not be heard, for want of a descriptor.
    std::uint64_t turned_away() const noexcept { return turned_away_; }

private:
    struct Caller {
        Descriptor socket;
        pid_t process;
    };
    bool accept_one();
    void hear(const std::function<void(Message)>& use);
    void add(Descriptor socket);

    std::string name_;
    Descriptor listening_;
    Descriptor events_;
    Descriptor spare_;  // to turn somebody away with
    std::uint64_t turned_away_ = 0;
    std::vector<Caller> callers_;  // who did not say anything yet
};

}  // namespace tensorpool::command::run
