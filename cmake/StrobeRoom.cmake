# strobe_room(NAME [DEPS target...]): the static library strobe_NAME out of src/NAME/*.cc.
function(strobe_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(strobe_${name} STATIC ${sources})
  target_include_directories(strobe_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(strobe_${name} PUBLIC ${ROOM_DEPS})
  strobe_warnings(strobe_${name})
endfunction()

# strobe_engine(NAME DEPS target...): the plugin libstrobe_engine_NAME.so out of the current folder.
function(strobe_engine name)
  cmake_parse_arguments(ENGINE "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(strobe_engine_${name} MODULE ${sources})
  target_include_directories(strobe_engine_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(strobe_engine_${name} PRIVATE ${ENGINE_DEPS})
  set_target_properties(strobe_engine_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/strobe)
  strobe_warnings(strobe_engine_${name})
  set_property(GLOBAL APPEND PROPERTY STROBE_ENGINE_TARGETS strobe_engine_${name})
endfunction()

function(strobe_warnings target)
  # -Wno-restrict: GCC 12 warns wrongly on std::string concatenation (PR 105651).
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  if(STROBE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

if(STROBE_SANITIZE)
  add_compile_options(-fsanitize=${STROBE_SANITIZE} -fno-omit-frame-pointer)
  # GCC takes its own instrumentation of a std::optional for a read of uninitialised memory (PR 105562).
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  add_link_options(-fsanitize=${STROBE_SANITIZE})
endif()
