import Foundation

/// Plugin packages that tests build: each once in a test run, in a folder below `.build` that the next run finds again.
enum PluginBuild {
    /// The faulty plugins, release.
    static func misbehave() throws -> URL { try misbehaveResult.get() }
    /// examples/plugins/mirror, release.
    static func mirror() throws -> URL { try mirrorResult.get() }

    private static let misbehaveResult = Result { try build(Repository.misbehave, scratch: "misbehave") }
    private static let mirrorResult = Result { try build(Repository.mirror, scratch: "mirror") }

    static func scratch(_ name: String) -> URL { Repository.root.appending(path: ".build/end-to-end/\(name)") }

    /// Builds a package in release; gives the folder with its libraries.
    static func build(_ package: URL, scratch name: String) throws -> URL {
        let outcome = try swift("build", "-c", "release", package: package, scratch: name)
        guard outcome.status == 0 else {
            throw TestFault("\(package.path) does not build:\n\(outcome.output)\n\(outcome.error)")
        }
        return scratch(name).appending(path: "release")
    }

    /// `swift VERB …` for a package, as a person would call it there.
    static func swift(_ verb: String, _ arguments: String..., package: URL, scratch name: String) throws -> Outcome {
        guard let path = Tool(name: "swift").path else { throw TestFault("swift is not in PATH") }
        return try Program(URL(fileURLWithPath: path)).run(
            [verb, "--package-path", package.path, "--scratch-path", scratch(name).path] + arguments, timeout: 420)
    }
}
