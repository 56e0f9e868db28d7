#pragma once

/// @file
/// Files of each format, made in memory: `ModelFile::read(writer.write().view(), "name")`.

#include "support/gguf_writer.hpp"
#include "support/numpy_writer.hpp"
#include "support/safetensors_writer.hpp"
