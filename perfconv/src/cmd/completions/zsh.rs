//! Completions of the command line for zsh: clap's script, with a first word that may be a command
//! or a file.
//!
//! clap's script completes the first word as the input, and commands after it, where perfconv would
//! refuse them.

/// The call in the script that completes arguments, and the start of the completions for commands.
const CALL: &str = "_arguments \"${_arguments_options[@]}\" : \\\n";
const COMMANDS: &str = "\":: :_perfconv_commands\" \\\n";
/// The branch by command in the script.
const CASE: &str = "case $line[2] in";
/// The end of the function that completes the names of commands.
const DESCRIBE: &str = "    _describe -t commands 'perfconv commands' commands \"$@\"\n";

/// Returns clap's `script` for the commands called `names`, with files as alternatives to commands.
/// Returns it unchanged if it does not have the expected format.
pub fn with_files(script: String, names: &[&str]) -> String {
    let parts = script
        .split_once(CALL)
        .and_then(|(before, rest)| Some((before, rest.split_once(COMMANDS)?)));
    let Some((before, (options, rest))) = parts else {
        return script;
    };
    let is_input = |line: &&str| {
        ["'::input", "'*::input"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let options: String = options
        .split_inclusive('\n')
        .filter(|line| !is_input(line))
        .collect();
    // More files, and the options, may follow a file.
    let case = format!(
        "if [[ \" {} \" != *\" $line[1] \"* ]]; then\n{CALL}{options}'*::input:_files' \\\n&& ret=0\n        return ret\n        \
         fi\n        case $line[1] in",
        names.join(" ")
    );
    let rest = rest
        .replacen(CASE, &case, 1)
        .replacen("words=($line[2] ", "words=($line[1] ", 1);
    let rest = rest.replacen("-command-$line[2]:", "-command-$line[1]:", 1);
    let rest = rest.replacen(DESCRIBE, &format!("{DESCRIBE}    _files\n"), 1);
    [before, CALL, &options, COMMANDS, &rest].concat()
}
