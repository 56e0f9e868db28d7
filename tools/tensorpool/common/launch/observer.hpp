#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/posix.hpp"

namespace tensorpool::command::launch {

/// What a process of the program sent: descriptors of its shared memory, or a note.
struct Message {
    pid_t process = 0;
    std::vector<Descriptor> files;
    std::string note;
};

/// Receives messages from the processes of the program, on a socket in the abstract name space
/// (unix(7)) with a random name. Accepts only processes of the same user, and one message from each
/// connection.
class Observer {
public:
    /// Throws CommandError.
    Observer();
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// The value of TENSORPOOL_OBSERVER.
    const std::string& name() const noexcept { return name_; }
    /// Becomes readable when there may be a message.
    int descriptor() const noexcept { return events_.number(); }
    /// Takes the messages that have arrived. Never waits.
    void take(const std::function<void(Message)>& use);
    /// The number of connections rejected because no descriptor was free.
    std::uint64_t turned_away() const noexcept { return turned_away_; }

private:
    struct Caller {
        Descriptor socket;
        pid_t process;
    };
    bool accept_one();
    void read_callers(const std::function<void(Message)>& use);
    void add(Descriptor socket);

    std::string name_;
    Descriptor listening_;
    Descriptor events_;
    Descriptor spare_;  // closed to make room for a connection to reject
    std::uint64_t turned_away_ = 0;
    std::vector<Caller> callers_;  // connected, but without a message so far
};

}  // namespace tensorpool::command::launch
