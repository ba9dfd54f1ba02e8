/** The style sheet of the page for people. It stands in the page, since nothing is loaded there. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0b6; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 16rem minmax(0, 1fr); }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); }
nav h2 { font-size: .85rem; margin: 1.2rem 0 .3rem; opacity: .7; }
nav ul { list-style: none; margin: 0; padding: 0; font-size: .9rem; }
nav a { display: block; padding: .1rem 0; }
main { padding: 1.5rem 2rem 6rem; max-width: 62rem; }
a { color: inherit; text-decoration-color: var(--accent); }
h1 { margin: 0; }
h2 { margin: 3rem 0 .5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 2.5rem 0 .3rem; font-size: 1.1rem; overflow-wrap: anywhere; }
h4 { margin: 1.2rem 0 .3rem; font-size: .95rem; }
code, pre { font: .875em/1.45 ui-monospace, monospace; }
code { background: var(--soft); padding: .05em .3em; border-radius: .2em; overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .7rem 1rem; border-radius: .3rem; overflow: auto; }
.method { font: 700 .8rem ui-monospace, monospace; padding: .15rem .5rem; margin-right: .5rem; border: 1px solid var(--accent); border-radius: .3rem; }
.note { opacity: .7; font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); }
td > p, td > ul { margin: 0; }
td > ul { padding-left: 1.1rem; }
summary { cursor: pointer; margin: .8rem 0; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; border-right: 0; } main { padding: 1rem; } }
`;
