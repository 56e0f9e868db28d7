#pragma once

/// @file
/// Writers that make files of each format in memory: `ModelFile::read(writer.write().view(),
/// "name")`.

#include "support/gguf_writer.hpp"
#include "support/numpy_writer.hpp"
#include "support/safetensors_writer.hpp"
