# Frames of every pixel format are made by hand here, so the tests, unlike the facade, link FFmpeg themselves;
# the pool is tested by itself, and lies in the plugin otherwise.
if(STROBE_MEDIA)
  target_link_libraries(strobe_media_test PRIVATE PkgConfig::FFMPEG)
  target_sources(strobe_media_test PRIVATE ${PROJECT_SOURCE_DIR}/src/media/ffmpeg/picture_pool.cc)
endif()

strobe_pkg_config(GST_RTSP_SERVER gstreamer-rtsp-server-1.0)
if(STROBE_MEDIA AND GST_RTSP_SERVER_FOUND)
  add_executable(strobe_test_rtsp_server ${CMAKE_CURRENT_LIST_DIR}/rtsp_server.cc)
  target_link_libraries(strobe_test_rtsp_server PRIVATE PkgConfig::GST_RTSP_SERVER)
  add_dependencies(strobe_media_test strobe_test_rtsp_server)
else()
  message(STATUS "tests: RTSP is not tested against a server (libgstrtspserver-1.0-dev was not found)")
endif()

# The stand-in for NVIDIA's driver and decoder, under both names: FFmpeg asks for both libraries.
find_path(STROBE_FFNVCODEC_INCLUDE ffnvcodec/dynlink_cuviddec.h)
if(STROBE_MEDIA AND STROBE_FFNVCODEC_INCLUDE)
  set(fake_nvdec_folder ${CMAKE_BINARY_DIR}/tests/fake_nvdec)
  foreach(name cuda nvcuvid)
    add_library(strobe_fake_nvdec_${name} SHARED ${CMAKE_CURRENT_LIST_DIR}/fake_nvdec.cc)
    set_target_properties(strobe_fake_nvdec_${name} PROPERTIES OUTPUT_NAME ${name} SOVERSION 1
      LIBRARY_OUTPUT_DIRECTORY ${fake_nvdec_folder})
    target_include_directories(strobe_fake_nvdec_${name} SYSTEM PRIVATE ${STROBE_FFNVCODEC_INCLUDE})
    strobe_warnings(strobe_fake_nvdec_${name})
    add_dependencies(strobe_media_test strobe_fake_nvdec_${name})
  endforeach()
  set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/hwaccel_test.cc APPEND PROPERTY
    COMPILE_DEFINITIONS STROBE_FAKE_NVDEC="${fake_nvdec_folder}")
else()
  message(STATUS "tests: NVDEC's stand-in is not built (libffmpeg-nvenc-dev was not found)")
endif()
