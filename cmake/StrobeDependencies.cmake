# What the rooms build on. A few libraries are essential; they come from the system, or out of a bundle that was made
# elsewhere (STROBE_BUNDLE, docs/bare-build.md). Whatever else is not found switches off the part that needs it, with
# one line that says so (docs/build.md lists the package of each).
find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)

# strobe_off(WHAT NEEDS): the one line of a part that is left out, with what would bring it in.
function(strobe_off what needs)
  message(STATUS "off: ${what} (needs ${needs})")
endfunction()

# strobe_pkg_config(NAME MODULE...): PkgConfig::NAME where pkg-config knows all modules; sets NAME_FOUND.
macro(strobe_pkg_config name)
  if(PKG_CONFIG_FOUND)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${ARGN})
  else()
    set(${name}_FOUND FALSE)
  endif()
endmacro()

set(STROBE_BUNDLE "" CACHE PATH "Folder made by tools/bundle_dependencies.sh to take the essential libraries from; empty: the system's")
if(STROBE_BUNDLE)
  include(StrobeBundle)
else()
  set(missing "")
  # What is found by CMake's own means, and the package that it is in.
  foreach(pair fmt:libfmt-dev nlohmann_json:nlohmann-json3-dev CLI11:libcli11-dev SQLite3:libsqlite3-dev
          yaml-cpp:libyaml-cpp-dev ZLIB:zlib1g-dev)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 name)
    list(GET pair 1 package)
    find_package(${name} QUIET)
    if(NOT ${name}_FOUND)
      list(APPEND missing ${package})
    endif()
  endforeach()
  foreach(triple ZSTD:zstd:libzstd-dev LZ4:lz4frame:liblz4-dev)
    string(REPLACE ":" ";" triple ${triple})
    list(GET triple 0 name)
    list(GET triple 1 header)
    list(GET triple 2 package)
    string(REGEX REPLACE "^lib|-dev$" "" library ${package})
    find_path(STROBE_${name}_INCLUDE ${header}.h)
    find_library(STROBE_${name}_LIBRARY ${library})
    mark_as_advanced(STROBE_${name}_INCLUDE STROBE_${name}_LIBRARY)
    if(STROBE_${name}_INCLUDE AND STROBE_${name}_LIBRARY)
      add_library(strobe::${library} UNKNOWN IMPORTED GLOBAL)
      set_target_properties(strobe::${library} PROPERTIES IMPORTED_LOCATION ${STROBE_${name}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${STROBE_${name}_INCLUDE})
    else()
      list(APPEND missing ${package})
    endif()
  endforeach()
  if(missing)
    list(JOIN missing " " missing)
    message(FATAL_ERROR "missing: ${missing}\nInstall them, or bring them along: `make bundle` on a Debian machine, "
                        "then -DSTROBE_BUNDLE=FOLDER here (docs/bare-build.md)")
  endif()
  if(NOT TARGET yaml-cpp AND TARGET yaml-cpp::yaml-cpp)  # from version 0.8 on
    add_library(yaml-cpp ALIAS yaml-cpp::yaml-cpp)
  endif()
  find_package(GTest QUIET)
endif()
strobe_pkg_config(ISAL libisal)  # without it zlib inflates

strobe_pkg_config(FFMPEG libavformat libavcodec libavutil libswscale libavdevice)
strobe_pkg_config(AVFILTER libavfilter libavutil)
strobe_pkg_config(FREETYPE freetype2)
set(STROBE_MEDIA ${FFMPEG_FOUND})

find_package(benchmark QUIET)
if(STROBE_TESTS AND NOT TARGET GTest::gmock)
  strobe_off("tests" "libgtest-dev libgmock-dev")
  set(STROBE_TESTS OFF)
endif()
if(STROBE_BENCHMARKS AND NOT benchmark_FOUND)
  strobe_off("benchmarks" "libbenchmark-dev")
endif()

# Wheels of torch and openvino carry C++ headers and CMake files. STROBE_PYTHON is the interpreter of the environment
# that holds them (the Makefile's own one by default, else python3); a user's CMAKE_PREFIX_PATH or Torch_DIR goes first.
set(STROBE_PYTHON "" CACHE FILEPATH "Python interpreter whose site-packages hold torch, openvino and plotly")
if(NOT STROBE_PYTHON)
  find_program(STROBE_SYSTEM_PYTHON python3)
  mark_as_advanced(STROBE_SYSTEM_PYTHON)
  if(STROBE_SYSTEM_PYTHON)
    set(STROBE_PYTHON ${STROBE_SYSTEM_PYTHON})
  endif()
endif()
set(STROBE_SITE_PACKAGES "")
if(STROBE_PYTHON)
  # An interpreter may have several folders of packages: the one with torch, if any.
  execute_process(COMMAND ${STROBE_PYTHON} -c
"import importlib.util, os, sysconfig
torch = importlib.util.find_spec('torch')
places = torch.submodule_search_locations if torch else None
print(os.path.dirname(places[0]) if places else sysconfig.get_paths()['purelib'])"
                  OUTPUT_VARIABLE STROBE_SITE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

# strobe_wants_engine(NAME OUT): whether STROBE_ENGINES asks for engine NAME.
function(strobe_wants_engine name out)
  if(STROBE_ENGINES STREQUAL "auto" OR name IN_LIST STROBE_ENGINES)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()
