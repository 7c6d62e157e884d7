//! What makes zsh complete the command line: clap's script, with a first word that may be a command or a file.
//!
//! clap takes the first word for the input, and completes commands behind it, where they would be refused.

/// How the script calls what completes arguments, and where the words for commands begin.
const CALL: &str = "_arguments \"${_arguments_options[@]}\" : \\\n";
const COMMANDS: &str = "\":: :_perfconv_commands\" \\\n";
/// Where it decides by the command.
const CASE: &str = "case $line[2] in";
/// The end of the function that completes the names of commands.
const DESCRIBE: &str = "    _describe -t commands 'perfconv commands' commands \"$@\"\n";

/// clap's `script` for the commands called `names`, with files in the place of commands. As it is where it is not made as
/// expected.
pub fn with_files(script: String, names: &[&str]) -> String {
    let parts = script.split_once(CALL).and_then(|(before, rest)| Some((before, rest.split_once(COMMANDS)?)));
    let Some((before, (options, rest))) = parts else { return script };
    let is_input = |line: &&str| ["'::input", "'*::input"].iter().any(|start| line.starts_with(start));
    let options: String = options.split_inclusive('\n').filter(|line| !is_input(line)).collect();
    // What stands behind a file are more files, and the options.
    let case = format!(
        "if [[ \" {} \" != *\" $line[1] \"* ]]; then\n{CALL}{options}'*::input:_files' \\\n&& ret=0\n        return ret\n        \
         fi\n        case $line[1] in",
        names.join(" ")
    );
    let rest = rest.replacen(CASE, &case, 1).replacen("words=($line[2] ", "words=($line[1] ", 1);
    let rest = rest.replacen("-command-$line[2]:", "-command-$line[1]:", 1);
    let rest = rest.replacen(DESCRIBE, &format!("{DESCRIBE}    _files\n"), 1);
    [before, CALL, &options, COMMANDS, &rest].concat()
}
