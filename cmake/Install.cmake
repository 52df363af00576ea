# What `cmake --install` lays out, every path relative to the prefix so that the tree can be moved, and
# the packages that tools/package.sh makes of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trtmc)
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH prefix_from_pkgconfig /${pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
configure_file(cmake/trtmc.pc.in trtmc.pc @ONLY)
configure_package_config_file(cmake/trtmcConfig.cmake.in trtmcConfig.cmake INSTALL_DESTINATION ${cmake_folder})
# Until 1.0 a minor version may change the C++ interface.
write_basic_package_version_file(trtmcConfigVersion.cmake COMPATIBILITY SameMinorVersion)

install(TARGETS trtmc RUNTIME COMPONENT program)
install(FILES ${described}/trtmc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
set(completions ${CMAKE_INSTALL_DATADIR})
# Debian's zsh looks for those of its packages in share/zsh/vendor-completions.
set(TRTMC_ZSH_FOLDER ${completions}/zsh/site-functions CACHE STRING "Folder of the completion for zsh, below the prefix")
install(FILES ${described}/trtmc.bash DESTINATION ${completions}/bash-completion/completions RENAME trtmc COMPONENT program)
install(FILES ${described}/_trtmc DESTINATION ${TRTMC_ZSH_FOLDER} COMPONENT program)
install(FILES ${described}/trtmc.fish DESTINATION ${completions}/fish/vendor_completions.d COMPONENT program)
install(FILES README.md CHANGELOG.md LICENSE THIRD_PARTY.md TYPE DOC COMPONENT program)
install(FILES docs/bundle_format.md docs/cli.md docs/environment_variables.md docs/gguf.md docs/hub.md docs/versioning.md
        TYPE DOC COMPONENT program)

install(TARGETS trtmc_shared EXPORT trtmc_targets
        LIBRARY COMPONENT library NAMELINK_COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY include/trtmc TYPE INCLUDE COMPONENT development)
install(EXPORT trtmc_targets NAMESPACE trtmc:: FILE trtmcTargets.cmake DESTINATION ${cmake_folder}
        COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/trtmcConfig.cmake ${PROJECT_BINARY_DIR}/trtmcConfigVersion.cmake
        DESTINATION ${cmake_folder} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/trtmc.pc DESTINATION ${pkgconfig_folder} COMPONENT development)
install(FILES docs/library.md TYPE DOC COMPONENT development)
install(DIRECTORY examples TYPE DOC COMPONENT development)

set(CPACK_PACKAGE_NAME trtmc)
set(CPACK_PACKAGE_VENDOR "the trtmc authors")
set(CPACK_PACKAGE_CONTACT "the trtmc authors <trtmc@localhost>" CACHE STRING "Maintainer of the packages")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Run Hugging Face language models from one self-contained bundle")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_FILE_NAME trtmc-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program library development)
# Three packages, as Debian parts a program, its library and the files to build with it.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME trtmc)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libtrtmc${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libtrtmc-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${PROJECT_VERSION})")
include(CPack)
