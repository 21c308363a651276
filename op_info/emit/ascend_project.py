# Copyright 2026 The ms_ops_transformer authors. SPDX-License-Identifier: Apache-2.0
"""The CMake project that a CANN toolkit builds: our sources in op_host/ and op_kernel/, and generated text.

Toolkits up to 8.5 bring a template project whose CMake functions are copied beside ours; newer ones bring the same
functions as the CMake package ASC.
"""

import json
import os
import re
import shutil
from pathlib import Path

from . import ascend, cpu

VENDOR = "ms_ops_transformer"
TEMPLATE, ASC = "template", "asc"  # the two kinds of toolkit
TEMPLATE_FOLDER = "tools/op_project_templates/ascendc/customize"
ASC_FILE = "compiler/tikcpp/ascendc_kernel_cmake/fwk_modules/func.cmake"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
_CPU_SOURCES = {"native.cpp", "cpu_entry.cpp"}  # of kernels/common


def toolkit_kind(home):
    """Which kind of toolkit is installed at `home`; None when there is none that can build operators."""
    if Path(home, ASC_FILE).is_file():
        return ASC
    return TEMPLATE if Path(home, TEMPLATE_FOLDER, "cmake").is_dir() else None


def stage(specs, out, kind, home, kernels_dir=cpu.KERNELS):
    """Writes the project for `specs` to the new folder `out`. From `home` a template project takes its own part."""
    out = Path(out)
    for folder in ("op_host/mst", "op_kernel"):
        (out / folder).mkdir(parents=True)
    _stage_host(specs, out / "op_host", kernels_dir)
    for spec in specs:
        (out / "op_kernel" / f"{ascend.entry_name(spec)}.cpp").write_text(ascend.kernel_entry(spec, kernels_dir))
        _stage_header(ascend.kernel_header(spec, kernels_dir), out / "op_kernel", kernels_dir)
    (out / "CMakePresets.json").write_text(_presets(specs, kind, home))
    (out / "op_host" / "CMakeLists.txt").write_text(_HOST_ASC if kind == ASC else _HOST_TEMPLATE)
    (out / "op_kernel" / "CMakeLists.txt").write_text(_KERNEL_ASC if kind == ASC else _KERNEL_TEMPLATE)
    (out / "CMakeLists.txt").write_text(_TOP_ASC if kind == ASC else _TOP_TEMPLATE)
    if kind == TEMPLATE:
        shutil.copytree(Path(home, TEMPLATE_FOLDER, "cmake"), out / "cmake")


def _stage_host(specs, folder, kernels_dir):
    """Registrations, and below mst/ what they call: kernels/common and the tiling of every operator."""
    own = folder / "mst"
    sources = [path for path in Path(kernels_dir, "common").iterdir() if path.name not in _CPU_SOURCES]
    for spec in specs:
        sources += Path(kernels_dir, spec.family, spec.folder).iterdir()
        (folder / f"{ascend.entry_name(spec)}.cpp").write_text(ascend.op_host_text(spec, kernels_dir))
        (own / f"{spec.name}_desc.cpp").write_text(cpu.desc_text(spec, kernels_dir))
    for path in sources:
        target = own / path.relative_to(kernels_dir)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    (own / "ascend_types.h").write_text(ascend.types_text())


def _stage_header(header, folder, kernels_dir):
    """A kernel's header and all that it includes of ours, by relative paths: CANN's build knows no root of ours."""
    target = folder / header
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    inner = []

    def relative(match):
        if not Path(kernels_dir, match[1]).is_file():
            return match[0]  # CANN's
        inner.append(match[1])
        return f'#include "{os.path.relpath(match[1], Path(header).parent)}"'

    target.write_text(_INCLUDE.sub(relative, Path(kernels_dir, header).read_text()))
    for name in inner:
        _stage_header(name, folder, kernels_dir)


def _presets(specs, kind, home):
    units = sorted({soc for spec in specs for soc in ascend.socs(spec)})
    variables = {
        "CMAKE_BUILD_TYPE": "Release",
        "vendor_name": VENDOR,
        "ASCEND_COMPUTE_UNIT": ";".join(units),
        "ASCEND_CANN_PACKAGE_PATH": str(home),
        "ASCEND_PYTHON_EXECUTABLE": "python3",
        "ENABLE_SOURCE_PACKAGE": "True",
        "ENABLE_BINARY_PACKAGE": "True",
        "CMAKE_INSTALL_PREFIX": "${sourceDir}/installed",
    }
    if kind == ASC:
        variables["ASC_DIR"] = f"{home}/lib64/cmake"  # of asc-config.cmake
    preset = {"name": "default", "generator": "Unix Makefiles", "binaryDir": "${sourceDir}/build_out"}
    preset["cacheVariables"] = variables
    version = {"major": 3, "minor": 19, "patch": 0}
    return json.dumps({"version": 1, "cmakeMinimumRequired": version, "configurePresets": [preset]}, indent=2) + "\n"


_TOP_TEMPLATE = """\
# The functions of CANN's template project, and our folders.
cmake_minimum_required(VERSION 3.19)
project(ms_ops_transformer_ascend)
include(cmake/config.cmake)
include(cmake/func.cmake)
include(cmake/intf.cmake)
set(CMAKE_COMPILE ${CMAKE_CXX_COMPILER})
add_subdirectory(op_host)
add_subdirectory(op_kernel)
"""

_HOST_TEMPLATE = """\
# Registrations and tiling become three libraries: for operator inference, for tiling, and what callers link.
file(GLOB_RECURSE ops_srcs ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
opbuild(OPS_SRC ${ops_srcs} -std=c++17 -I${CMAKE_CURRENT_SOURCE_DIR}/mst OUT_DIR ${ASCEND_AUTOGEN_PATH})

get_target_property(options intf_pub INTERFACE_COMPILE_OPTIONS)
string(REPLACE "-std=c++11" "-std=c++17" options "${options}")
set_target_properties(intf_pub PROPERTIES INTERFACE_COMPILE_OPTIONS "${options}")

set(packages packages/vendors/${vendor_name})
function(add_host_library name output definition folder)
  add_library(${name} SHARED ${ops_srcs} ${ARGN})
  target_compile_definitions(${name} PRIVATE ${definition})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/mst)
  target_link_libraries(${name} PRIVATE intf_pub exe_graph register tiling_api
    -Wl,--whole-archive rt2_registry -Wl,--no-whole-archive)
  set_target_properties(${name} PROPERTIES OUTPUT_NAME ${output})
  install(TARGETS ${name} LIBRARY DESTINATION ${packages}/${folder}/lib/linux/${CMAKE_SYSTEM_PROCESSOR})
endfunction()
add_host_library(cust_op_proto cust_opsproto_rt2.0 OP_PROTO_LIB op_proto ${ASCEND_AUTOGEN_PATH}/op_proto.cc)
add_host_library(cust_optiling cust_opmaster_rt2.0 OP_TILING_LIB op_impl/ai_core/tbe/op_tiling)
install(FILES ${ASCEND_AUTOGEN_PATH}/op_proto.h DESTINATION ${packages}/op_proto/inc)
# The name that older callers open.
install(FILES $<TARGET_FILE:cust_optiling> DESTINATION ${packages}/op_impl/ai_core/tbe/op_tiling
  RENAME liboptiling.so)

file(GLOB aclnn_srcs ${ASCEND_AUTOGEN_PATH}/aclnn_*.cpp)
file(GLOB aclnn_headers ${ASCEND_AUTOGEN_PATH}/aclnn_*.h)
add_library(cust_opapi SHARED ${aclnn_srcs})
target_link_libraries(cust_opapi PRIVATE intf_pub ascendcl nnopbase)
install(TARGETS cust_opapi LIBRARY DESTINATION ${packages}/op_api/lib)
install(FILES ${aclnn_headers} DESTINATION ${packages}/op_api/include)
"""

_KERNEL_TEMPLATE = """\
add_kernels_compile()
"""

_TOP_ASC = """\
cmake_minimum_required(VERSION 3.19)
project(ms_ops_transformer_ascend)
find_package(ASC REQUIRED)
set(package_name ${vendor_name})
npu_op_package(${package_name} TYPE RUN CONFIG ENABLE_CPACK False INSTALL_PATH ${CMAKE_INSTALL_PREFIX})
add_subdirectory(op_host)
add_subdirectory(op_kernel)
"""

_HOST_ASC = """\
# Registrations and tiling become three libraries: for operator inference, for tiling, and what callers link.
file(GLOB_RECURSE ops_srcs ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
npu_op_code_gen(SRC ${ops_srcs} PACKAGE ${package_name} OUT_DIR ${ASCEND_AUTOGEN_PATH}
  COMPILE_OPTIONS -std=c++17 -I${CMAKE_CURRENT_SOURCE_DIR}/mst)

file(GLOB aclnn_srcs ${ASCEND_AUTOGEN_PATH}/aclnn_*.cpp)
npu_op_library(cust_opapi ACLNN ${aclnn_srcs})
npu_op_library(cust_op_proto GRAPH ${ops_srcs} ${ASCEND_AUTOGEN_PATH}/op_proto.cc)
npu_op_library(cust_optiling TILING ${ops_srcs})
foreach(library cust_op_proto cust_optiling)
  target_compile_features(${library} PRIVATE cxx_std_17)
  target_include_directories(${library} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/mst)
endforeach()
npu_op_package_add(${package_name} LIBRARY cust_optiling cust_opapi cust_op_proto)
"""

_KERNEL_ASC = """\
npu_op_kernel_sources(ascendc_kernels KERNEL_DIR ./)
npu_op_kernel_library(ascendc_kernels SRC_BASE ${CMAKE_CURRENT_SOURCE_DIR}/ TILING_LIBRARY cust_optiling)
npu_op_package_add(${package_name} LIBRARY ascendc_kernels)
"""
