// SPDX-License-Identifier: Apache-2.0

/// The files of the page at `/`, embedded in the image: what is served is what was built.
///
/// docs/design/021-live-operation.md. [any thread]
public enum PageFiles {
    public struct File: Sendable {
        /// Content-Type.
        public var type: String
        public var bytes: [UInt8]
    }

    /// The file of a path without its slash; nil where there is none. `""` is the page itself.
    public static func file(_ name: String) -> File? {
        switch name {
        case "": File(type: "text/html; charset=utf-8", bytes: PackageResources.index_html)
        case "page.css": File(type: "text/css; charset=utf-8", bytes: PackageResources.page_css)
        case "h264.js": script(PackageResources.h264_js)
        case "h265.js": script(PackageResources.h265_js)
        case "icon.svg": File(type: "image/svg+xml", bytes: PackageResources.icon_svg)
        case "announce.js": script(PackageResources.announce_js)
        case "api.js": script(PackageResources.api_js)
        case "areas.js": script(PackageResources.areas_js)
        case "curve.js": script(PackageResources.curve_js)
        case "dialogs.js": script(PackageResources.dialogs_js)
        case "dom.js": script(PackageResources.dom_js)
        case "events.js": script(PackageResources.events_js)
        case "feed.js": script(PackageResources.feed_js)
        case "forms.js": script(PackageResources.forms_js)
        case "graph.js": script(PackageResources.graph_js)
        case "layout.js": script(PackageResources.layout_js)
        case "list.js": script(PackageResources.list_js)
        case "live.js": script(PackageResources.live_js)
        case "login.js": script(PackageResources.login_js)
        case "main.js": script(PackageResources.main_js)
        case "model.js": script(PackageResources.model_js)
        case "previews.js": script(PackageResources.previews_js)
        case "reason.js": script(PackageResources.reason_js)
        case "snapshot.js": script(PackageResources.snapshot_js)
        case "stage.js": script(PackageResources.stage_js)
        case "video.js": script(PackageResources.video_js)
        case "words.js": script(PackageResources.words_js)
        default: nil
        }
    }

    private static func script(_ bytes: [UInt8]) -> File { File(type: "text/javascript; charset=utf-8", bytes: bytes) }
}
