#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http/listen_address.hpp"

namespace tensorpool::command::serve {

/// The host names under which the server answers. A malicious page can make the browser resolve its
/// own name to this server's address ("DNS rebinding"). Its requests then carry that name.
class HostNames {
public:
    explicit HostNames(const ListenAddress& address);

    /// Whether the value of a `Host` header is one of the names. Ports are ignored, because a
    /// tunnel may use another.
    bool contain(std::string_view host) const;

private:
    std::vector<std::string> names_;
    bool any_number_;  ///< any numeric address: these cannot be rebound
};

}  // namespace tensorpool::command::serve
