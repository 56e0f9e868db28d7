#pragma once

#include <httplib.h>

#include <chrono>

namespace tensorpool::command::serve {

/// A connection for reading and writing. Reads end by the deadline, which must be set before. A
/// write sends all bytes or fails.
class Transport : public httplib::Stream {
public:
    using Deadline = std::chrono::steady_clock::time_point;
    virtual void set_deadline(Deadline deadline) = 0;
};

}  // namespace tensorpool::command::serve
