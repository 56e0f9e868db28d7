#include "serve/service.hpp"

namespace tensorpool::command::serve {

Service::Service(Processes& processes, const Options& options)
    : listener_(options.address),
      watcher_(processes, options.token.empty() ? KeepProfiles::no : KeepProfiles::yes),
      gate_(HostNames(options.address), options.token, listener_.port()),
      site_(watcher_, gate_),
      server_(site_, options.limits),
      rounds_(watcher_, options.period),
      thread_([this] {
          watcher_.wait(0, std::chrono::seconds(10));
          server_.run(listener_);
      }) {}

Service::~Service() {
    watcher_.stop();
    server_.stop();
    thread_.join();
}

}  // namespace tensorpool::command::serve
