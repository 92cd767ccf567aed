// SPDX-License-Identifier: Apache-2.0

// `swift build` builds what the root package's own targets need. This target needs every plugin that is a package of
// its own, and holds nothing (docs/design/014-packages.md).
