/** The unprivileged user of every sandbox. */
export interface SandboxUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** The account files of the host, as texts. */
export interface AccountFiles {
  readonly passwd: string;
  readonly group: string;
}

const NAME = 'user';
const HOME = '/home/user';
const FIRST_ID = 1000;
const LAST_ID = 60_000;

/**
 * The account files of a sandbox: those of the host and the user `user` with a group of the same name, whose number is
 * 1000 or the first that is free for both. Nobody has a password, so the host's hashes stay outside.
 */
export function sandboxAccounts({ passwd, group }: AccountFiles): {
  user: SandboxUser;
  files: Readonly<Record<'passwd' | 'group' | 'shadow' | 'gshadow', string>>;
} {
  const users = rows(passwd).filter(([name]) => name !== NAME);
  const groups = rows(group).filter(([name]) => name !== NAME);
  const id = freeId(new Set([...users, ...groups].map((row) => Number(row[2]))));
  users.push([NAME, 'x', String(id), String(id), '', HOME, '/bin/bash']);
  groups.push([NAME, 'x', String(id), '']);
  return {
    user: { name: NAME, uid: id, gid: id, home: HOME },
    files: {
      passwd: text(users),
      group: text(groups),
      shadow: text(users.map(([name = '']) => [name, '*', '19000', '0', '99999', '7', '', '', ''])),
      gshadow: text(groups.map(([name = '', , , members = '']) => [name, '*', '', members])),
    },
  };
}

function rows(file: string): string[][] {
  return file
    .split('\n')
    .filter((line) => line !== '' && !/^[#+-]/.test(line))
    .map((line) => line.split(':'));
}

function text(table: readonly (readonly string[])[]): string {
  return table.map((row) => `${row.join(':')}\n`).join('');
}

function freeId(taken: ReadonlySet<number>): number {
  for (let id = FIRST_ID; id < LAST_ID; id += 1) if (!taken.has(id)) return id;
  throw new Error(`no user id between ${FIRST_ID} and ${LAST_ID} is free for the user of sandboxes`);
}
