#pragma once

namespace tensorpool::platform {

/// Keeps the shared library or plugin that contains this code loaded until the process ends, also
/// after dlclose: the system calls its functions later, such as those for threads that end. Does
/// nothing if the code is part of the program itself. Call it while the library is loaded. Returns
/// false if the code may be unloaded, as on systems other than Linux.
bool keep_loaded() noexcept;

}  // namespace tensorpool::platform
