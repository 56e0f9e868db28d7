#pragma once

#include <httplib.h>

namespace tensorpool::command::serve {

/// What answers requests. Any thread.
class Site {
public:
    virtual ~Site() = default;
    /// Every answer has these.
    virtual httplib::Headers headers() const = 0;
    /// False where `take` is to answer, once the body has been read.
    virtual bool answer(const httplib::Request& request, httplib::Response& response) = 0;
    virtual void take(const httplib::Request& request, httplib::Response& response) = 0;
};

}  // namespace tensorpool::command::serve
